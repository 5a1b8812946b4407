#include "rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace dragoman {

void QuantisedRows::quantise(int index, const float* from, int width) {
  // Ordered as integers the bits of |x| are ordered as numbers, with infinity and NaN on top.
  __m512i most = _mm512_setzero_si512();
  const __m512i sign = _mm512_set1_epi32(0x7FFFFFFF);
  for (int i = 0; i < width; i += kLanes) {
    const __m512 x = _mm512_maskz_loadu_ps(lanes(i, width), from + i);
    most = _mm512_max_epu32(most, _mm512_and_si512(_mm512_castps_si512(x), sign));
  }
  const std::uint32_t bits = _mm512_reduce_max_epu32(most);
  float largest;
  std::memcpy(&largest, &bits, sizeof largest);
  const __m512 inverse = _mm512_set1_ps(largest > 0.0f ? 127.0f / largest : 0.0f);
  std::int8_t* to = values.data() + std::size_t(index) * stride;
  __m512i sum = _mm512_setzero_si512();
  for (int i = 0; i < stride; i += kLanes) {
    const __mmask16 mask = i < width ? lanes(i, width) : __mmask16(0);
    const __m512 x = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, from + i), inverse);
    const __m512i quanta = _mm512_cvtps_epi32(x);
    sum = _mm512_add_epi32(sum, quanta);
    _mm_store_si128(reinterpret_cast<__m128i*>(to + i), _mm512_cvtsepi32_epi8(quanta));
  }
  scale[index] = largest / 127.0f;
  excess[index] = 128 * _mm512_reduce_add_epi32(sum);
}

Norm::Norm(const float* weight_from, const float* bias_from, int width, float epsilon, bool is_rms)
    : width(width), epsilon(epsilon), is_rms(is_rms) {
  weight.reserve(width);
  bias.reserve(width);
  std::copy_n(weight_from, width, weight.data());
  if (bias_from != nullptr) {
    std::copy_n(bias_from, width, bias.data());
  } else {
    std::fill_n(bias.data(), width, 0.0f);
  }
}

void Norm::apply(const float* from, float* to) const {
  __m512 mean = _mm512_setzero_ps();
  if (!is_rms) {
    __m512 sum = _mm512_setzero_ps();
    for (int i = 0; i < width; i += kLanes) {
      sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(lanes(i, width), from + i));
    }
    mean = _mm512_set1_ps(_mm512_reduce_add_ps(sum) / static_cast<float>(width));
  }
  __m512 squares = _mm512_setzero_ps();
  for (int i = 0; i < width; i += kLanes) {
    const __mmask16 mask = lanes(i, width);
    const __m512 x = _mm512_maskz_sub_ps(mask, _mm512_maskz_loadu_ps(mask, from + i), mean);
    squares = _mm512_fmadd_ps(x, x, squares);
  }
  const float variance = _mm512_reduce_add_ps(squares) / static_cast<float>(width);
  const __m512 factor = _mm512_set1_ps(1.0f / std::sqrt(variance + epsilon));
  for (int i = 0; i < width; i += kLanes) {
    const __mmask16 mask = lanes(i, width);
    const __m512 x = _mm512_sub_ps(_mm512_maskz_loadu_ps(mask, from + i), mean);
    const __m512 y = _mm512_fmadd_ps(_mm512_mul_ps(x, factor),
                                     _mm512_maskz_loadu_ps(mask, weight.data() + i),
                                     _mm512_maskz_loadu_ps(mask, bias.data() + i));
    _mm512_mask_storeu_ps(to + i, mask, y);
  }
}

}  // namespace dragoman
