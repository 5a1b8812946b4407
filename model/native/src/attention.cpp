#include "attention.h"

#include <cmath>
#include <limits>
#include <type_traits>

namespace dragoman {
namespace {

constexpr int kMaxQueries = 4;

// Scores to e^(score - max), padding to zero; returns 1 / Σ.
float soften(float* scores, int length) {
  Floats most = all(-std::numeric_limits<float>::infinity());
  for (int i = 0; i < length; i += kLanes) {
    most = larger_of_first(most, load(scores + i), length - i);
  }
  const Floats peak = all(largest_of(most));
  Floats sum = zeros();
  for (int i = 0; i < length; i += kLanes) {
    const Floats weight = keep_first(exponential(sub(load(scores + i), peak)), length - i);
    store(scores + i, weight);
    sum = add(sum, weight);
  }
  return 1.0f / sum_of(sum);
}

void add_bias(float* scores, const float* bias, int length) {
  for (int i = 0; i < length; i += kLanes) {
    store(scores + i, add(load(scores + i), load(bias + i)));
  }
}

// Blocks of sixteen positions whose scores are summed side by side: each sum is a chain of additions that
// wait for each other, so there should be several, as far as there are registers.
constexpr int kNumFloats = kNumRegisters * kSumLanes / kLanes;
constexpr int num_chains(int num_queries) {
  for (int blocks = 4; blocks > 1; blocks /= 2) {
    const int num_sums = num_queries * blocks;
    if (num_sums <= 8 && num_sums + blocks + 1 <= kNumFloats) return blocks;
  }
  return 1;
}

// The scores of R queries with B blocks.
template <int R, int B>
void score_blocks(const HeadShape& shape, const half* keys, const float* const* queries,
                  float* scores, int stride) {
  const std::size_t block = std::size_t(kLanes) * shape.keys();
  Floats sum[R][B];
  for (int r = 0; r < R; ++r) {
    for (int b = 0; b < B; ++b) sum[r][b] = zeros();
  }
  for (int d = 0; d < shape.key_width; ++d) {
    Floats sixteen[B];
    for (int b = 0; b < B; ++b) sixteen[b] = load_half(keys + b * block + std::size_t(d) * kLanes);
    for (int r = 0; r < R; ++r) {
      const Floats query = all(queries[r][d]);
      for (int b = 0; b < B; ++b) sum[r][b] = mul_add(sixteen[b], query, sum[r][b]);
    }
  }
  const Floats scale = all(shape.scale);
  for (int r = 0; r < R; ++r) {
    for (int b = 0; b < B; ++b) store(scores + r * stride + b * kLanes, mul(sum[r][b], scale));
  }
}

// As many blocks at a time as there may be, then the others.
template <int R, int B>
void score_from(const HeadShape& shape, const half* keys, const float* const* queries,
                float* scores, int stride, int num_blocks) {
  for (; num_blocks >= B; num_blocks -= B) {
    score_blocks<R, B>(shape, keys, queries, scores, stride);
    keys += std::size_t(B) * kLanes * shape.keys();
    scores += B * kLanes;
  }
  if constexpr (B > 1) {
    if (num_blocks > 0) {
      score_from<R, B / 2>(shape, keys, queries, scores, stride, num_blocks);
    }
  }
}

template <int R>
void score_sentence(const HeadShape& shape, int head, const Sentence& sentence,
                    const float* const* queries, float* scratch, int stride) {
  const int width = shape.key_width;
  const float* of_head[R];
  for (int r = 0; r < R; ++r) of_head[r] = queries[r] + head * width;
  score_from<R, num_chains(R)>(shape, sentence.keys + std::size_t(head) * width * kLanes, of_head,
                               scratch, stride, stride / kLanes);
}

// Calls body(first, constant) for the columns of a head's values that are worked on together: from vector
// `first` on so many. The compiler has to know the number, as sums stay in registers only then.
template <int V = kValueVectors, class Body>
inline void for_columns(int num_vectors, const Body& body, int first = 0) {
  for (; first + V <= num_vectors; first += V) body(first, std::integral_constant<int, V>());
  if constexpr (V > 1) for_columns<V / 2>(num_vectors, body, first);
}

// Σ weight · value over positions for R rows and V vectors of values: values(position) are those of a
// position.
template <int R, int V, class Values>
inline void mix(int length, const Values& values, const float* weights, int stride,
                const float* inverse, float* const* outputs, int offset) {
  Floats sum[R][V];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) sum[r][v] = zeros();
  }
  for (int position = 0; position < length; ++position) {
    const half* from = values(position);
    Floats value[V];
    for (int v = 0; v < V; ++v) value[v] = load_half(from + v * kLanes);
    for (int r = 0; r < R; ++r) {
      const Floats weight = all(weights[r * stride + position]);
      for (int v = 0; v < V; ++v) sum[r][v] = mul_add(value[v], weight, sum[r][v]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      store(outputs[r] + offset + v * kLanes, mul(sum[r][v], all(inverse[r])));
    }
  }
}

template <int R>
void mix_sentence(const HeadShape& shape, int head, const Sentence& sentence, const float* scratch,
                  int stride, const float* inverse, float* const* outputs) {
  const int width = shape.value_width;
  const std::size_t row = shape.values();
  for_columns(width / kLanes, [&](int first, auto num) {
    const int offset = head * width + first * kLanes;
    const half* values = sentence.values + offset;
    mix<R, num.value>(
        sentence.length, [&](int position) { return values + position * row; }, scratch, stride,
        inverse, outputs, offset);
  });
}

template <int R>
void attend(const HeadShape& shape, int head, const Sentence& sentence, const float* const* queries,
            const float* const* biases, float* scratch, float* const* outputs,
            float* const* weights, float weight_factor) {
  const int stride = round_up(sentence.length, kLanes);
  score_sentence<R>(shape, head, sentence, queries, scratch, stride);
  if (biases != nullptr) {
    for (int r = 0; r < R; ++r) add_bias(scratch + r * stride, biases[r], sentence.length);
  }
  float inverse[R];
  for (int r = 0; r < R; ++r) inverse[r] = soften(scratch + r * stride, sentence.length);
  mix_sentence<R>(shape, head, sentence, scratch, stride, inverse, outputs);
  if (weights == nullptr) return;
  for (int r = 0; r < R; ++r) {
    for (int i = 0; i < sentence.length; ++i) {
      const float weight = scratch[r * stride + i] * inverse[r];
      weights[r][i] = std::fma(weight, weight_factor, weights[r][i]);
    }
  }
}

}  // namespace

void store_in_sentence(const HeadShape& shape, int position, const float* keys, const float* values,
                       half* to_keys, half* to_values) {
  half* block = to_keys + std::size_t(position / kLanes) * kLanes * shape.keys();
  alignas(64) half narrow[kLanes];
  for (int i = 0; i < shape.keys(); i += kLanes) {
    store_half(narrow, load(keys + i));
    for (int lane = 0; lane < kLanes; ++lane) {
      block[std::size_t(i + lane) * kLanes + position % kLanes] = narrow[lane];
    }
  }
  half* row = to_values + std::size_t(position) * shape.values();
  for (int i = 0; i < shape.values(); i += kLanes) {
    store_half(row + i, load(values + i));
  }
}

void attend_to_sentence(const HeadShape& shape, int head, const Sentence& sentence,
                        const float* const* queries, int num_queries, const float* const* biases,
                        float* scratch, float* const* outputs, float* const* weights,
                        float weight_factor) {
  static_assert(kMaxQueries == 4);
  switch (num_queries) {
    case 4:
      return attend<4>(shape, head, sentence, queries, biases, scratch, outputs, weights,
                       weight_factor);
    case 3:
      return attend<3>(shape, head, sentence, queries, biases, scratch, outputs, weights,
                       weight_factor);
    case 2:
      return attend<2>(shape, head, sentence, queries, biases, scratch, outputs, weights,
                       weight_factor);
    default:
      return attend<1>(shape, head, sentence, queries, biases, scratch, outputs, weights,
                       weight_factor);
  }
}

void attend_to_past(const HeadShape& shape, const RelativeBias& bias, const half* const* nodes,
                    int length, const float* query, float* scratch, float* output) {
  const int stride = round_up(length, kLanes);
  for (int t = 0; t < length; ++t) {
    const half* key = nodes[t];
    for (int head = 0; head < shape.num_heads; ++head) {
      const int begin = head * shape.key_width;
      Floats sum = mul(load_half(key + begin), load(query + begin));
      for (int i = kLanes; i < shape.key_width; i += kLanes) {
        sum = mul_add(load_half(key + begin + i), load(query + begin + i), sum);
      }
      scratch[head * stride + t] = sum_of(sum) * shape.scale;
    }
  }
  for (int head = 0; head < shape.num_heads; ++head) {
    float* weights = scratch + head * stride;
    if (!bias.is_empty()) add_bias(weights, bias.of(head, length - 1), length);
    const float inverse = soften(weights, length);
    for_columns(shape.value_width / kLanes, [&](int first, auto num) {
      const int offset = head * shape.value_width + first * kLanes;
      const int place = shape.keys() + offset;
      mix<1, num.value>(
          length, [&](int t) { return nodes[t] + place; }, weights, stride, &inverse, &output,
          offset);
    });
  }
}

}  // namespace dragoman
