#include "attention.h"

#include <algorithm>
#include <limits>

namespace dragoman {
namespace {

constexpr int kMaxQueries = 4;
constexpr int kBlockVectors = 4;  // vectors of values worked on together

// Scores to e^(score - max), padding to zero; returns 1 / Σ.
float soften(float* scores, int length) {
  __m512 most = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  for (int i = 0; i < length; i += kLanes) {
    const __mmask16 mask = lanes(i, length);
    most = _mm512_mask_max_ps(most, mask, most, _mm512_loadu_ps(scores + i));
  }
  const __m512 peak = _mm512_set1_ps(_mm512_reduce_max_ps(most));
  __m512 sum = _mm512_setzero_ps();
  for (int i = 0; i < length; i += kLanes) {
    const __m512 shifted = _mm512_sub_ps(_mm512_loadu_ps(scores + i), peak);
    const __m512 weight = _mm512_maskz_mov_ps(lanes(i, length), exponential(shifted));
    _mm512_storeu_ps(scores + i, weight);
    sum = _mm512_add_ps(sum, weight);
  }
  return 1.0f / _mm512_reduce_add_ps(sum);
}

void add_bias(float* scores, const float* bias, int length) {
  for (int i = 0; i < length; i += kLanes) {
    _mm512_storeu_ps(scores + i,
                     _mm512_add_ps(_mm512_loadu_ps(scores + i), _mm512_loadu_ps(bias + i)));
  }
}

template <int R>
void score_sentence(const HeadShape& shape, int head, const Sentence& sentence,
                    const float* const* queries, float* scratch, int stride) {
  const __m512 scale = _mm512_set1_ps(shape.scale);
  for (int begin = 0; begin < sentence.length; begin += kLanes) {
    const half* keys = sentence.keys + std::size_t(begin) * shape.keys() +
                       std::size_t(head) * shape.key_width * kLanes;
    __m512 sum[R];
    for (int r = 0; r < R; ++r) sum[r] = _mm512_setzero_ps();
    for (int d = 0; d < shape.key_width; ++d) {
      const __m512 sixteen = load_half(keys + std::size_t(d) * kLanes);
      for (int r = 0; r < R; ++r) {
        const __m512 query = _mm512_set1_ps(queries[r][head * shape.key_width + d]);
        sum[r] = _mm512_fmadd_ps(sixteen, query, sum[r]);
      }
    }
    for (int r = 0; r < R; ++r) {
      _mm512_storeu_ps(scratch + r * stride + begin, _mm512_mul_ps(sum[r], scale));
    }
  }
}

template <int R>
void mix_sentence(const HeadShape& shape, int head, const Sentence& sentence, const float* scratch,
                  int stride, const float* inverse, float* const* outputs) {
  const int width = shape.value_width;
  for (int first = 0; first < width; first += kBlockVectors * kLanes) {
    const int num_vectors =
        (width - first < kBlockVectors * kLanes ? width - first : kBlockVectors * kLanes) / kLanes;
    __m512 sum[R][kBlockVectors];
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < kBlockVectors; ++v) sum[r][v] = _mm512_setzero_ps();
    }
    const half* values = sentence.values + std::size_t(head) * width + first;
    for (int position = 0; position < sentence.length; ++position) {
      for (int v = 0; v < num_vectors; ++v) {
        const __m512 value = load_half(values + v * kLanes);
        for (int r = 0; r < R; ++r) {
          const __m512 weight = _mm512_set1_ps(scratch[r * stride + position]);
          sum[r][v] = _mm512_fmadd_ps(value, weight, sum[r][v]);
        }
      }
      values += shape.values();
    }
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < num_vectors; ++v) {
        _mm512_storeu_ps(outputs[r] + head * width + first + v * kLanes,
                         _mm512_mul_ps(sum[r][v], _mm512_set1_ps(inverse[r])));
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
      weights[r][i] += scratch[r * stride + i] * inverse[r] * weight_factor;
    }
  }
}

}  // namespace

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

void store_in_sentence(const HeadShape& shape, int position, const float* keys, const float* values,
                       half* to_keys, half* to_values) {
  half* block = to_keys + std::size_t(position / kLanes) * kLanes * shape.keys();
  alignas(64) half narrow[kLanes];
  for (int i = 0; i < shape.keys(); i += kLanes) {
    store_half(narrow, _mm512_loadu_ps(keys + i));
    for (int lane = 0; lane < kLanes; ++lane) {
      block[std::size_t(i + lane) * kLanes + position % kLanes] = narrow[lane];
    }
  }
  half* row = to_values + std::size_t(position) * shape.values();
  for (int i = 0; i < shape.values(); i += kLanes) {
    store_half(row + i, _mm512_loadu_ps(values + i));
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
      __m512 sum = _mm512_mul_ps(load_half(key + begin), _mm512_loadu_ps(query + begin));
      for (int i = kLanes; i < shape.key_width; i += kLanes) {
        sum = _mm512_fmadd_ps(load_half(key + begin + i), _mm512_loadu_ps(query + begin + i), sum);
      }
      scratch[head * stride + t] = _mm512_reduce_add_ps(sum) * shape.scale;
    }
  }
  for (int head = 0; head < shape.num_heads; ++head) {
    float* weights = scratch + head * stride;
    if (!bias.is_empty()) add_bias(weights, bias.of(head, length - 1), length);
    const __m512 inverse = _mm512_set1_ps(soften(weights, length));
    const int width = shape.value_width;
    for (int first = 0; first < width; first += kBlockVectors * kLanes) {
      const int left = (width - first) / kLanes;
      const int num_vectors = left < kBlockVectors ? left : kBlockVectors;
      const int offset = shape.keys() + head * width + first;
      __m512 sum[kBlockVectors];
      for (int v = 0; v < kBlockVectors; ++v) sum[v] = _mm512_setzero_ps();
      for (int t = 0; t < length; ++t) {
        const __m512 weight = _mm512_set1_ps(weights[t]);
        for (int v = 0; v < num_vectors; ++v) {
          sum[v] = _mm512_fmadd_ps(load_half(nodes[t] + offset + v * kLanes), weight, sum[v]);
        }
      }
      for (int v = 0; v < num_vectors; ++v) {
        _mm512_storeu_ps(output + head * width + first + v * kLanes,
                         _mm512_mul_ps(sum[v], inverse));
      }
    }
  }
}

}  // namespace dragoman
