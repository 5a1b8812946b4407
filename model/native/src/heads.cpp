#include "heads.h"

#include <algorithm>

namespace dragoman {

RelativeBias::RelativeBias(const float* scores, int num_heads, int max_length)
    : max_length_(max_length), stride_(2 * max_length - 1 + kLanes) {
  const std::size_t size = std::size_t(num_heads) * stride_;
  const int num_distances = 2 * max_length - 1;
  scores_.reserve(size);
  std::fill_n(scores_.data(), size, 0.0f);
  for (int head = 0; head < num_heads; ++head) {
    std::copy_n(scores + std::size_t(head) * num_distances, num_distances,
                scores_.data() + std::size_t(head) * stride_);
  }
}

}  // namespace dragoman
