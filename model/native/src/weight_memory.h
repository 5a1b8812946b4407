// Memory of a network's matrices: written as they are packed, or lent by somebody who has them packed.
//
// Owns where matrices lie, one after another, and how the system backs what is written here. What lies
// there is the matrix's (gemm.h); where packed weights are kept is Python's
// (model/native/packed_folder.py). Until all is packed, it is for one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace dragoman {

class WeightMemory {
 public:
  // Empty: matrices are packed into it.
  WeightMemory() = default;
  // Full: matrices lie in `size` bytes at a cache line, which `owner` keeps and nobody changes.
  WeightMemory(const std::byte* data, std::size_t size, std::shared_ptr<const void> owner);
  WeightMemory(const WeightMemory&) = delete;
  WeightMemory& operator=(const WeightMemory&) = delete;
  ~WeightMemory();

  // Room for `num_bytes` more, zeros at a cache line. Weights are read from end to end at every
  // step, and small pages would cost a table walk every 4 KiB: blocks ask for huge ones.
  std::byte* take(std::size_t num_bytes);
  // Gives back what huge pages have beyond the last matrix.
  void trim();

  // All matrices in the order in which they were made; one after another they are the memory.
  struct Part {
    const std::byte* data;
    std::size_t size;
  };
  const std::vector<Part>& parts() const { return parts_; }

  // From a place to its offset in the memory, and back.
  std::size_t offset_of(const std::byte* place) const;
  const std::byte* at(std::size_t offset, std::size_t num_bytes) const;

 private:
  struct Block {
    std::byte* begin;
    std::size_t size;
  };

  std::vector<Block> blocks_;  // of our own; the last part lies in the last one
  std::vector<Part> parts_;
  std::shared_ptr<const void> owner_;
};

}  // namespace dragoman
