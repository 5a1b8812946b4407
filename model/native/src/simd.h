// Sixteen floats at a time: the few vector functions that the kernels share.
//
// Everything here works on one row at a time and in a fixed order, so that a row's result never
// depends on what else is computed beside it.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace dragoman {

constexpr int kLanes = 16;

// IEEE half precision, as the caches store it.
using half = std::uint16_t;

constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

// Lanes of a vector that begins `begin` elements into a row of `size`.
inline __mmask16 lanes(int begin, int size) {
  const int left = size - begin;
  return left >= kLanes ? __mmask16(0xFFFF) : __mmask16((1u << left) - 1u);
}

// e^x to about one unit in the last place; below -87 it stays at the smallest normal number.
// Range reduction and polynomial of Cephes' expf. NaN stays NaN: min and max give their second
// operand then.
inline __m512 exponential(__m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(-87.3f), _mm512_min_ps(_mm512_set1_ps(88.0f), x));
  const __m512 whole = _mm512_roundscale_ps(
      _mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 rest = _mm512_fnmadd_ps(whole, _mm512_set1_ps(0.693359375f), x);
  rest = _mm512_fnmadd_ps(whole, _mm512_set1_ps(-2.12194440e-4f), rest);
  __m512 y = _mm512_set1_ps(1.9875691500e-4f);
  y = _mm512_fmadd_ps(y, rest, _mm512_set1_ps(1.3981999507e-3f));
  y = _mm512_fmadd_ps(y, rest, _mm512_set1_ps(8.3334519073e-3f));
  y = _mm512_fmadd_ps(y, rest, _mm512_set1_ps(4.1665795894e-2f));
  y = _mm512_fmadd_ps(y, rest, _mm512_set1_ps(1.6666665459e-1f));
  y = _mm512_fmadd_ps(y, rest, _mm512_set1_ps(5.0000001201e-1f));
  y = _mm512_fmadd_ps(y, _mm512_mul_ps(rest, rest), rest);
  return _mm512_scalef_ps(_mm512_add_ps(y, _mm512_set1_ps(1.0f)), whole);
}

// 1 / (1 + e^-x).
inline __m512 sigmoid(__m512 x) {
  const __m512 one = _mm512_set1_ps(1.0f);
  return _mm512_div_ps(one, _mm512_add_ps(one, exponential(_mm512_sub_ps(_mm512_setzero_ps(), x))));
}

// The error function to 1.5e-7 (Abramowitz and Stegun, 7.1.26).
inline __m512 error_function(__m512 x) {
  const __m512 one = _mm512_set1_ps(1.0f), size = _mm512_abs_ps(x);
  const __m512 t = _mm512_div_ps(one, _mm512_fmadd_ps(size, _mm512_set1_ps(0.3275911f), one));
  __m512 y = _mm512_set1_ps(1.061405429f);
  y = _mm512_fmadd_ps(y, t, _mm512_set1_ps(-1.453152027f));
  y = _mm512_fmadd_ps(y, t, _mm512_set1_ps(1.421413741f));
  y = _mm512_fmadd_ps(y, t, _mm512_set1_ps(-0.284496736f));
  y = _mm512_fmadd_ps(y, t, _mm512_set1_ps(0.254829592f));
  y = _mm512_mul_ps(_mm512_mul_ps(y, t), exponential(_mm512_sub_ps(
                                            _mm512_setzero_ps(), _mm512_mul_ps(x, x))));
  const __mmask16 is_negative = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
  const __m512 positive = _mm512_sub_ps(one, y);
  return _mm512_mask_sub_ps(positive, is_negative, _mm512_setzero_ps(), positive);
}

inline __m512 load_half(const half* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

inline void store_half(half* to, __m512 value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

}  // namespace dragoman
