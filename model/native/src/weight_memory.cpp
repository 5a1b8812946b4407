#include "weight_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <stdexcept>

namespace dragoman {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t(2) << 20;
// Address space of a block; what is written of it becomes memory.
constexpr std::size_t kBlock = std::size_t(64) << 20;

std::size_t rounded_up(std::size_t size, std::size_t step) {
  return (size + step - 1) / step * step;
}

// Address space of `size` bytes, whole huge pages.
std::byte* reserve(std::size_t size) {
  void* memory = mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  std::byte* begin = static_cast<std::byte*>(memory);
  const std::size_t place = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t skipped = rounded_up(place, kHugePage) - place;
  if (skipped > 0) munmap(begin, skipped);
  if (skipped < kHugePage) munmap(begin + skipped + size, kHugePage - skipped);
  madvise(begin + skipped, size, MADV_HUGEPAGE);
  return begin + skipped;
}

}  // namespace

WeightMemory::WeightMemory(const std::byte* data, std::size_t size,
                           std::shared_ptr<const void> owner)
    : parts_{{data, size}}, owner_(std::move(owner)) {
  if (reinterpret_cast<std::uintptr_t>(data) % kCacheLine != 0) {
    throw std::invalid_argument("packed weights must begin at a cache line");
  }
}

WeightMemory::~WeightMemory() {
  for (const Block& block : blocks_) munmap(block.begin, block.size);
}

std::byte* WeightMemory::take(std::size_t num_bytes) {
  if (owner_) throw std::invalid_argument("memory that is lent takes no more matrices");
  const std::size_t wanted = rounded_up(num_bytes, kCacheLine);
  if (blocks_.empty() || blocks_.back().size - parts_.back().size < wanted) {
    trim();
    const std::size_t size = rounded_up(std::max(kBlock, wanted), kHugePage);
    blocks_.push_back({reserve(size), size});
    parts_.push_back({blocks_.back().begin, 0});
  }
  const std::size_t offset = parts_.back().size;
  parts_.back().size += wanted;
  return blocks_.back().begin + offset;
}

void WeightMemory::trim() {
  if (blocks_.empty()) return;
  const Block& block = blocks_.back();
  const std::size_t used = rounded_up(parts_.back().size, kPage);
  if (used < block.size) madvise(block.begin + used, block.size - used, MADV_DONTNEED);
}

std::size_t WeightMemory::offset_of(const std::byte* place) const {
  std::size_t first = 0;
  for (const Part& part : parts_) {
    if (place >= part.data && place < part.data + part.size) {
      return first + static_cast<std::size_t>(place - part.data);
    }
    first += part.size;
  }
  throw std::out_of_range("a matrix does not lie in this memory");
}

const std::byte* WeightMemory::at(std::size_t offset, std::size_t num_bytes) const {
  if (offset % kCacheLine != 0) throw std::invalid_argument("a matrix begins at a cache line");
  for (const Part& part : parts_) {
    if (offset < part.size) {
      if (num_bytes > part.size - offset) break;
      return part.data + offset;
    }
    offset -= part.size;
  }
  throw std::out_of_range("a matrix does not lie within the packed weights");
}

}  // namespace dragoman
