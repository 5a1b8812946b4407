#include "attention.h"

#include <cmath>
#include <limits>

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

template <int R>
void score_sentence(const HeadShape& shape, int head, const Sentence& sentence,
                    const float* const* queries, float* scratch, int stride) {
  const Floats scale = all(shape.scale);
  for (int begin = 0; begin < sentence.length; begin += kLanes) {
    const half* keys = sentence.keys + std::size_t(begin) * shape.keys() +
                       std::size_t(head) * shape.key_width * kLanes;
    Floats sum[R];
    for (int r = 0; r < R; ++r) sum[r] = zeros();
    for (int d = 0; d < shape.key_width; ++d) {
      const Floats sixteen = load_half(keys + std::size_t(d) * kLanes);
      for (int r = 0; r < R; ++r) {
        const Floats query = all(queries[r][head * shape.key_width + d]);
        sum[r] = mul_add(sixteen, query, sum[r]);
      }
    }
    for (int r = 0; r < R; ++r) {
      store(scratch + r * stride + begin, mul(sum[r], scale));
    }
  }
}

template <int R>
void mix_sentence(const HeadShape& shape, int head, const Sentence& sentence, const float* scratch,
                  int stride, const float* inverse, float* const* outputs) {
  const int width = shape.value_width;
  for (int first = 0; first < width; first += kValueVectors * kLanes) {
    const int num_vectors =
        (width - first < kValueVectors * kLanes ? width - first : kValueVectors * kLanes) / kLanes;
    Floats sum[R][kValueVectors];
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < kValueVectors; ++v) sum[r][v] = zeros();
    }
    const half* values = sentence.values + std::size_t(head) * width + first;
    for (int position = 0; position < sentence.length; ++position) {
      for (int v = 0; v < num_vectors; ++v) {
        const Floats value = load_half(values + v * kLanes);
        for (int r = 0; r < R; ++r) {
          const Floats weight = all(scratch[r * stride + position]);
          sum[r][v] = mul_add(value, weight, sum[r][v]);
        }
      }
      values += shape.values();
    }
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < num_vectors; ++v) {
        store(outputs[r] + head * width + first + v * kLanes,
                         mul(sum[r][v], all(inverse[r])));
      }
    }
  }
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
    const Floats inverse = all(soften(weights, length));
    const int width = shape.value_width;
    for (int first = 0; first < width; first += kValueVectors * kLanes) {
      const int left = (width - first) / kLanes;
      const int num_vectors = left < kValueVectors ? left : kValueVectors;
      const int offset = shape.keys() + head * width + first;
      Floats sum[kValueVectors];
      for (int v = 0; v < kValueVectors; ++v) sum[v] = zeros();
      for (int t = 0; t < length; ++t) {
        const Floats weight = all(weights[t]);
        for (int v = 0; v < num_vectors; ++v) {
          sum[v] = mul_add(load_half(nodes[t] + offset + v * kLanes), weight, sum[v]);
        }
      }
      for (int v = 0; v < num_vectors; ++v) {
        store(output + head * width + first + v * kLanes,
                         mul(sum[v], inverse));
      }
    }
  }
}

}  // namespace dragoman
