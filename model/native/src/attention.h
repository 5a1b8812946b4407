// Attention of a few queries over cached keys and values, in half precision.
//
// Two layouts, one for each way of reading. A *sentence* (the source as the decoder sees it, or as
// it sees itself within the encoder) is read by several queries: its keys lie in blocks of sixteen
// positions, so that a score needs no sum across lanes. A *past* is read by one row: the keys
// and values of every earlier position, each in the row that computed it.
#pragma once

#include "memory.h"
#include "simd.h"

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

// Where the keys and values of one sentence lie: keys (⌈S/16⌉, H, key_width, 16), values
// (S, H · value_width).
struct Sentence {
  const half* keys;
  const half* values;
  int length;
};

inline std::size_t sentence_keys_size(const HeadShape& shape, int length) {
  return std::size_t(round_up(length, kLanes)) * shape.keys();
}
inline std::size_t sentence_values_size(const HeadShape& shape, int length) {
  return std::size_t(length) * shape.values();
}

// Stores position `position` of a sentence from a row of floats: all keys, then all values.
void store_in_sentence(const HeadShape& shape, int position, const float* keys, const float* values,
                       half* to_keys, half* to_values);

// One head's attention of up to four queries over a sentence. `biases`, if given, are added to the
// queries' scores. `scratch` holds four times the padded length; if `weights` is given, the softmax
// is added to it times `weight_factor`.
void attend_to_sentence(const HeadShape& shape, int head, const Sentence& sentence,
                        const float* const* queries, int num_queries, const float* const* biases,
                        float* scratch, float* const* outputs, float* const* weights,
                        float weight_factor);

// All heads' attention of one row over its past. `nodes[t]` points to the keys of position t,
// its values follow them; `scratch` holds `num_heads` times the padded length.
void attend_to_past(const HeadShape& shape, const RelativeBias& bias, const half* const* nodes,
                    int length, const float* query, float* scratch, float* output);

}  // namespace dragoman
