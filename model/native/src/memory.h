// Memory that kernels work in: aligned, grown on demand, never shrunk, given back at the end.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace dragoman {

// An array of plain numbers, aligned to a cache line. Room for more is new memory: see `reserve`.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() { std::free(data_); }

  // Makes room for `size` elements and discards all that there are: where it has to grow, nothing is
  // copied and the new memory is not initialised. Large arrays ask for huge pages: weights are read from end
  // to end at every step, and small pages would cost a table walk every 4 KiB.
  void reserve(std::size_t size) {
    if (size <= size_) return;
    std::free(data_);
    data_ = nullptr;
    size_ = 0;
    const std::size_t wanted = size * sizeof(T);
    const std::size_t alignment = wanted >= kHugePage ? kHugePage : kCacheLine;
    const std::size_t num_bytes = (wanted + alignment - 1) / alignment * alignment;
    void* memory = std::aligned_alloc(alignment, num_bytes);
    if (memory == nullptr) throw std::bad_alloc();
    if (alignment == kHugePage) madvise(memory, num_bytes, MADV_HUGEPAGE);
    data_ = static_cast<T*>(memory);
    size_ = size;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](std::size_t index) { return data_[index]; }
  const T& operator[](std::size_t index) const { return data_[index]; }

 private:
  static constexpr std::size_t kCacheLine = 64;
  static constexpr std::size_t kHugePage = std::size_t(2) << 20;

  T* data_ = nullptr;
  std::size_t size_ = 0;
};

// Address space that becomes memory page by page as it is written: the caches are laid out for
// the longest sentence and cost what the present ones need.
template <class T>
class LazyArray {
 public:
  explicit LazyArray(std::size_t size) : num_bytes_(size * sizeof(T)) {
    if (num_bytes_ == 0) return;
    void* memory = mmap(nullptr, num_bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<T*>(memory);
  }
  LazyArray(const LazyArray&) = delete;
  LazyArray& operator=(const LazyArray&) = delete;
  ~LazyArray() {
    if (data_ != nullptr) munmap(data_, num_bytes_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }

  // Gives the whole pages within elements `begin` to `end` back to the system; they read as
  // zeros afterwards.
  void forget(std::size_t begin, std::size_t end) {
    constexpr std::size_t page = 4096;
    const std::size_t first = (begin * sizeof(T) + page - 1) / page * page;
    const std::size_t last = end * sizeof(T) / page * page;
    if (first < last) madvise(reinterpret_cast<char*>(data_) + first, last - first, MADV_DONTNEED);
  }

 private:
  T* data_ = nullptr;
  std::size_t num_bytes_ = 0;
};

}  // namespace dragoman
