// Attention of a few queries over cached keys and values, in half precision.
//
// Two layouts, one for each way of reading. A *sentence* (the source as the decoder sees it, or as
// it sees itself within the encoder) is read by several queries: its keys lie in blocks of sixteen
// positions, so that a score needs no sum across lanes. A *past* is read by one row: the keys
// and values of every earlier position, each in the row that computed it.
#pragma once

#include "heads.h"
#include "simd.h"

namespace dragoman {

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
