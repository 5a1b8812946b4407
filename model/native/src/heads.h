// Sizes of attention heads, and what is added to their scores by distance.
#pragma once

#include "memory.h"
#include "sizes.h"

namespace dragoman {

// Sizes of all heads of one layer; widths are padded to whole vectors with zeros.
struct HeadShape {
  int num_heads;
  int key_width;    // of one head, padded
  int value_width;  // of one head, padded
  float scale;      // of scores: 1 / sqrt of the unpadded key width, or 1

  int keys() const { return num_heads * key_width; }
  int values() const { return num_heads * value_width; }
};

// What is added to scores of self-attention by the distance of key and query; empty if nothing is.
class RelativeBias {
 public:
  RelativeBias() = default;
  // `scores` (num_heads, 2 · max_length - 1), by key - query from -(max_length - 1) on.
  RelativeBias(const float* scores, int num_heads, int max_length);

  bool is_empty() const { return scores_.data() == nullptr; }
  // Of the query at a position: element t is for the key at position t, and a whole vector may be
  // read from every t below max_length.
  const float* of(int head, int query) const {
    return scores_.data() + std::size_t(head) * stride_ + (max_length_ - 1 - query);
  }

 private:
  Buffer<float> scores_;
  int max_length_ = 0, stride_ = 0;
};

}  // namespace dragoman
