// Vectors of AVX-512 (F, BW, DQ, VL), with VNNI or without: one register has sixteen numbers.
// Products of many rows by AMX are amx.h's.
#pragma once

#include <immintrin.h>

#include "../sizes.h"
#include "bytes.h"
#include "eight.h"

namespace dragoman {

using Floats = __m512;
using Ints = __m512i;
using Doubles = __m512d;  // eight sums of doubles

// The first `num` lanes; all of them from 16 on.
inline __mmask16 first(int num) {
  return num >= kLanes ? __mmask16(0xFFFF) : __mmask16((1u << num) - 1u);
}

inline Floats zeros() { return _mm512_setzero_ps(); }
inline Floats all(float x) { return _mm512_set1_ps(x); }
inline Floats load(const float* from) { return _mm512_loadu_ps(from); }
inline void store(float* to, Floats x) { _mm512_storeu_ps(to, x); }
// Of the first `num` lanes; the others are zero, or are not written.
inline Floats load_first(const float* from, int num) { return _mm512_maskz_loadu_ps(first(num), from); }
inline void store_first(float* to, Floats x, int num) { _mm512_mask_storeu_ps(to, first(num), x); }
inline Floats keep_first(Floats x, int num) { return _mm512_maskz_mov_ps(first(num), x); }

inline Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
inline Floats sub(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
inline Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
inline Floats div(Floats a, Floats b) { return _mm512_div_ps(a, b); }
// a b + c and c - a b, rounded once.
inline Floats mul_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
inline Floats sub_mul(Floats c, Floats a, Floats b) { return _mm512_fnmadd_ps(a, b, c); }
// a > b ? a : b and a < b ? a : b; so b where either is no number.
inline Floats larger(Floats a, Floats b) { return _mm512_max_ps(a, b); }
inline Floats smaller(Floats a, Floats b) { return _mm512_min_ps(a, b); }
// `larger` in the first `num` lanes, `a` in the others.
inline Floats larger_of_first(Floats a, Floats b, int num) {
  return _mm512_mask_max_ps(a, first(num), a, b);
}
inline Floats magnitude(Floats x) { return _mm512_abs_ps(x); }
inline Floats where_negative(Floats x, Floats yes, Floats no) {
  return _mm512_mask_mov_ps(no, _mm512_cmp_ps_mask(x, zeros(), _CMP_LT_OQ), yes);
}
// Halves go to the even number.
inline Floats nearest(Floats x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// x 2^whole, both it and 2^whole normal numbers.
inline Floats times_power_of_two(Floats x, Floats whole) { return _mm512_scalef_ps(x, whole); }
// Bit by bit, which lanes of `a` are at least those of `b`.
inline unsigned at_least(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }

inline float sum_of(Floats x) {
  return sum_of_eight(_mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1)));
}
inline float largest_of(Floats x) {
  return largest_of_eight(
      _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1)));
}

inline Floats load_half(const half* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
inline void store_half(half* to, Floats x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

inline Ints zero_ints() { return _mm512_setzero_si512(); }
inline Ints all_ints(std::int32_t x) { return _mm512_set1_epi32(x); }
inline Ints load_ints(const std::int32_t* from) { return _mm512_load_si512(from); }
inline Ints add_ints(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
inline Ints larger_int(Ints a, Ints b) { return _mm512_max_epi32(a, b); }
// The nearest integers; the smallest one for what is none.
inline Ints to_ints(Floats x) { return _mm512_cvtps_epi32(x); }
inline Floats to_floats(Ints x) { return _mm512_cvtepi32_ps(x); }
// The bits of |x|: ordered as numbers are, with infinity and NaN on top.
inline Ints magnitude_bits(Floats x) {
  return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7FFFFFFF));
}
inline std::int32_t sum_of(Ints x) {
  return sum_of_eight(_mm256_add_epi32(_mm512_castsi512_si256(x), _mm512_extracti32x8_epi32(x, 1)));
}
inline std::int32_t largest_of(Ints x) {
  return largest_of_eight(
      _mm256_max_epi32(_mm512_castsi512_si256(x), _mm512_extracti32x8_epi32(x, 1)));
}
// Sixteen integers of -128 … 127 to bytes.
inline void store_quanta(Quantum* to, Ints x) {
  _mm_store_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtsepi32_epi8(x));
}

inline Doubles zero_doubles() { return _mm512_setzero_pd(); }
// The first eight floats, then the last eight.
inline Doubles add_floats(Doubles sum, Floats x) {
  sum = _mm512_add_pd(sum, _mm512_cvtps_pd(_mm512_castps512_ps256(x)));
  return _mm512_add_pd(sum, _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)));
}
inline double sum_of(Doubles x) {
  return sum_of_four(_mm256_add_pd(_mm512_castpd512_pd256(x), _mm512_extractf64x4_pd(x, 1)));
}

// Vectors of outputs worked on together, by rows that are; and the registers there are.
constexpr int kBlockRows = 6;
constexpr int kNumRegisters = 32;
constexpr int tile_vectors(int) { return 4; }
constexpr int kValueVectors = 4;  // vectors of attention's values worked on together

using Sums = __m512i;
constexpr int kSumLanes = 16;   // outputs of a register of sums
constexpr int kRowSums = 16;    // sums of rows with listed outputs worked on together
inline Sums zero_sums() { return _mm512_setzero_si512(); }
inline void store_sums(std::int32_t* to, Sums sums) { _mm512_store_si512(to, sums); }

inline __m512i load_bytes(const void* from) { return _mm512_load_si512(from); }

using Weights = __m512i;      // w + 128
using Activations = __m512i;  // q
constexpr int kWeightRegisters = 1;

inline Weights load_weights(const std::uint8_t* from) { return load_bytes(from); }
inline Activations load_activations(const Quantum* from) { return load_bytes(from); }
inline Activations four_activations(const Quantum* from) {
  std::int32_t bytes;
  __builtin_memcpy(&bytes, from, sizeof bytes);
  return _mm512_set1_epi32(bytes);
}

// Σ (w + 128) q of four each. Written out, because compilers copy the accumulator before the
// intrinsics.
#if defined(__AVX512VNNI__)

#if defined(__AMX_INT8__)
constexpr const char* kInstructionSet = "avx512-amx";
#else
constexpr const char* kInstructionSet = "avx512-vnni";
#endif
constexpr bool kSaturates = false;
constexpr int kOtherRegisters = 1;

inline void dot_four(Sums& sum, Weights weights, Activations activations) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(weights), "v"(activations));
}
inline unsigned set_apart(Quantum*, Quantum*) { return 0; }

#else

constexpr const char* kInstructionSet = "avx512";
constexpr bool kSaturates = true;
constexpr int kOtherRegisters = 2;

inline void dot_four(Sums& sum, Weights weights, Activations activations) {
  __m512i pairs;
  asm("vpmaddubsw %3, %2, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"
      : "+v"(sum), "=&v"(pairs)
      : "v"(weights), "v"(activations), "v"(_mm512_set1_epi16(1)));
}
// 255 times two activations of one sign is less than 2^15 where they are 128 together.
inline unsigned set_apart(Quantum* row, Quantum* rest) {
  const __m512i all = load_bytes(row), limit = _mm512_set1_epi8(64);
  const __m512i pairs = _mm512_maddubs_epi16(_mm512_set1_epi8(1), all);
  const __mmask32 is_much = _mm512_cmpgt_epi16_mask(_mm512_abs_epi16(pairs), _mm512_set1_epi16(128));
  const __m512i part = _mm512_max_epi8(_mm512_min_epi8(all, limit), _mm512_sub_epi8(zero_sums(), limit));
  const __m512i apart = _mm512_maskz_mov_epi16(is_much, part);
  _mm512_store_si512(rest, apart);
  _mm512_store_si512(row, _mm512_sub_epi8(all, apart));
  return _mm512_test_epi32_mask(apart, apart);
}

#endif

// What `dot_four` has summed, without Σ 128 q.
inline Ints without(Ints sum, std::int32_t excess) {
  return _mm512_sub_epi32(sum, _mm512_set1_epi32(excess));
}

// Sixteen registers to the sum of each, in their order.
inline void sums_of(const Sums* from, std::int32_t* to) {
  __m512i twos[8], fours[4];
  for (int i = 0; i < 8; ++i) {
    twos[i] = _mm512_add_epi32(_mm512_unpacklo_epi32(from[2 * i], from[2 * i + 1]),
                               _mm512_unpackhi_epi32(from[2 * i], from[2 * i + 1]));
  }
  for (int i = 0; i < 4; ++i) {
    fours[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(twos[2 * i], twos[2 * i + 1]),
                                _mm512_unpackhi_epi64(twos[2 * i], twos[2 * i + 1]));
  }
  const auto fold = [](__m512i a, __m512i b) {
    return _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xDD));
  };
  store_sums(to, fold(fold(fours[0], fours[1]), fold(fours[2], fours[3])));
}

}  // namespace dragoman
