// Vectors of AVX2 with FMA and F16C: two registers have sixteen numbers. With AVX-VNNI four bytes
// are multiplied and summed by one instruction.
#pragma once

#include <immintrin.h>

#include "../sizes.h"
#include "bytes.h"
#include "eight.h"

namespace dragoman {

struct Floats {
  __m256 low, high;
};
struct Ints {
  __m256i low, high;
};
struct Doubles {  // eight sums of doubles
  __m256d low, high;
};

// The first `num` lanes of 16: whole numbers of ones, then of zeros.
inline Ints first(int num) {
  alignas(64) static constexpr std::int32_t kOnes[2 * kLanes] = {
      -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  const std::int32_t* from = kOnes + kLanes - num;
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 8))};
}

inline Floats zeros() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline Floats all(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline Floats load(const float* from) { return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}; }
inline void store(float* to, Floats x) {
  _mm256_storeu_ps(to, x.low);
  _mm256_storeu_ps(to + 8, x.high);
}
// Of the first `num` lanes, all of them from 16 on; the others are zero, or are not written.
inline Floats load_first(const float* from, int num) {
  if (num >= kLanes) return load(from);
  const Ints mask = first(num);
  return {_mm256_maskload_ps(from, mask.low), _mm256_maskload_ps(from + 8, mask.high)};
}
inline void store_first(float* to, Floats x, int num) {
  if (num >= kLanes) return store(to, x);
  const Ints mask = first(num);
  _mm256_maskstore_ps(to, mask.low, x.low);
  _mm256_maskstore_ps(to + 8, mask.high, x.high);
}
inline Floats keep_first(Floats x, int num) {
  if (num >= kLanes) return x;
  const Ints mask = first(num);
  return {_mm256_and_ps(x.low, _mm256_castsi256_ps(mask.low)),
          _mm256_and_ps(x.high, _mm256_castsi256_ps(mask.high))};
}

inline Floats add(Floats a, Floats b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
inline Floats sub(Floats a, Floats b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
inline Floats mul(Floats a, Floats b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
inline Floats div(Floats a, Floats b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
// a b + c and c - a b, rounded once.
inline Floats mul_add(Floats a, Floats b, Floats c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
inline Floats sub_mul(Floats c, Floats a, Floats b) {
  return {_mm256_fnmadd_ps(a.low, b.low, c.low), _mm256_fnmadd_ps(a.high, b.high, c.high)};
}
// a > b ? a : b and a < b ? a : b; so b where either is no number.
inline Floats larger(Floats a, Floats b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
inline Floats smaller(Floats a, Floats b) {
  return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}
// `larger` in the first `num` lanes, `a` in the others.
inline Floats larger_of_first(Floats a, Floats b, int num) {
  const Floats most = larger(a, b);
  if (num >= kLanes) return most;
  const Ints mask = first(num);
  return {_mm256_blendv_ps(a.low, most.low, _mm256_castsi256_ps(mask.low)),
          _mm256_blendv_ps(a.high, most.high, _mm256_castsi256_ps(mask.high))};
}
inline Floats magnitude(Floats x) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, x.low), _mm256_andnot_ps(sign, x.high)};
}
inline Floats where_negative(Floats x, Floats yes, Floats no) {
  const __m256 zero = _mm256_setzero_ps();
  return {_mm256_blendv_ps(no.low, yes.low, _mm256_cmp_ps(x.low, zero, _CMP_LT_OQ)),
          _mm256_blendv_ps(no.high, yes.high, _mm256_cmp_ps(x.high, zero, _CMP_LT_OQ))};
}
// Halves go to the even number.
inline Floats nearest(Floats x) {
  constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(x.low, kMode), _mm256_round_ps(x.high, kMode)};
}
// 2^whole of eight: its exponent is all there is of it.
inline __m256 power_of_two(__m256 whole) {
  const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(whole), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
}
// x 2^whole, both it and 2^whole normal numbers.
inline Floats times_power_of_two(Floats x, Floats whole) {
  return {_mm256_mul_ps(x.low, power_of_two(whole.low)),
          _mm256_mul_ps(x.high, power_of_two(whole.high))};
}
// Bit by bit, which lanes of `a` are at least those of `b`.
inline unsigned at_least(Floats a, Floats b) {
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(a.low, b.low, _CMP_GE_OQ))) |
         static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(a.high, b.high, _CMP_GE_OQ))) << 8;
}

inline float sum_of(Floats x) { return sum_of_eight(_mm256_add_ps(x.low, x.high)); }
inline float largest_of(Floats x) { return largest_of_eight(_mm256_max_ps(x.low, x.high)); }

inline Floats load_half(const half* from) {
  const auto eight = [](const half* place) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(place)));
  };
  return {eight(from), eight(from + 8)};
}
inline void store_half(half* to, Floats x) {
  const auto eight = [](half* place, __m256 numbers) {
    constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(place), _mm256_cvtps_ph(numbers, kMode));
  };
  eight(to, x.low);
  eight(to + 8, x.high);
}

inline Ints zero_ints() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
inline Ints all_ints(std::int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
inline Ints load_ints(const std::int32_t* from) {
  return {_mm256_load_si256(reinterpret_cast<const __m256i*>(from)),
          _mm256_load_si256(reinterpret_cast<const __m256i*>(from + 8))};
}
inline Ints add_ints(Ints a, Ints b) {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
inline Ints larger_int(Ints a, Ints b) {
  return {_mm256_max_epi32(a.low, b.low), _mm256_max_epi32(a.high, b.high)};
}
// The nearest integers; the smallest one for what is none.
inline Ints to_ints(Floats x) { return {_mm256_cvtps_epi32(x.low), _mm256_cvtps_epi32(x.high)}; }
inline Floats to_floats(Ints x) {
  return {_mm256_cvtepi32_ps(x.low), _mm256_cvtepi32_ps(x.high)};
}
// The bits of |x|: ordered as numbers are, with infinity and NaN on top.
inline Ints magnitude_bits(Floats x) {
  const Floats size = magnitude(x);
  return {_mm256_castps_si256(size.low), _mm256_castps_si256(size.high)};
}
inline std::int32_t sum_of(Ints x) { return sum_of_eight(_mm256_add_epi32(x.low, x.high)); }
inline std::int32_t largest_of(Ints x) {
  return largest_of_eight(_mm256_max_epi32(x.low, x.high));
}
inline Doubles zero_doubles() { return {_mm256_setzero_pd(), _mm256_setzero_pd()}; }
// The first eight floats, then the last eight.
inline Doubles add_floats(Doubles sum, Floats x) {
  const auto add_eight = [&sum](__m256 eight) {
    sum.low = _mm256_add_pd(sum.low, _mm256_cvtps_pd(_mm256_castps256_ps128(eight)));
    sum.high = _mm256_add_pd(sum.high, _mm256_cvtps_pd(_mm256_extractf128_ps(eight, 1)));
  };
  add_eight(x.low);
  add_eight(x.high);
  return sum;
}
inline double sum_of(Doubles x) { return sum_of_four(_mm256_add_pd(x.low, x.high)); }

constexpr int kNumRegisters = 16;
constexpr int kValueVectors = 1;  // vectors of attention's values worked on together

using Sums = __m256i;
constexpr int kSumLanes = 8;  // outputs of a register of sums
constexpr int kRowSums = 8;   // sums of rows with listed outputs worked on together
inline Sums zero_sums() { return _mm256_setzero_si256(); }
inline void store_sums(std::int32_t* to, Sums sums) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(to), sums);
}

inline __m256i load_bytes(const void* from) {
  return _mm256_load_si256(static_cast<const __m256i*>(from));
}

constexpr int kBlockRows = 6;
constexpr int kWeightRegisters = 1;
// Vectors of outputs worked on together, by rows that are.
constexpr int tile_vectors(int num_rows) { return num_rows == 1 ? 8 : num_rows == 2 ? 4 : 2; }

using Weights = __m256i;      // w + 128
using Activations = __m256i;  // q

// Sixteen integers of -128 … 127 to bytes.
inline void store_quanta(Quantum* to, Ints x) {
  const __m256i shorts = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.low, x.high), 0xD8);
  const __m128i bytes =
      _mm_packs_epi16(_mm256_castsi256_si128(shorts), _mm256_extracti128_si256(shorts, 1));
  _mm_store_si128(reinterpret_cast<__m128i*>(to), bytes);
}

inline Weights load_weights(const std::uint8_t* from) { return load_bytes(from); }
inline Activations load_activations(const Quantum* from) { return load_bytes(from); }
inline Activations four_activations(const Quantum* from) {
  std::int32_t bytes;
  __builtin_memcpy(&bytes, from, sizeof bytes);
  return _mm256_set1_epi32(bytes);
}

// Σ (w + 128) q of four each. Written out, because compilers copy the accumulator before the
// intrinsics, or keep in a register what sums need all registers for.
#if defined(__AVXVNNI__) || defined(DRAGOMAN_EVEX_VNNI)

constexpr const char* kInstructionSet = "avx2-vnni";
constexpr bool kSaturates = false;
constexpr int kOtherRegisters = 0;

// The longer encoding is that of AVX-512: processors that have only this one can test these kernels.
inline void dot_four(Sums& sum, Weights weights, Activations activations) {
#if defined(DRAGOMAN_EVEX_VNNI)
  asm("%{evex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(weights), "x"(activations));
#else
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(weights), "x"(activations));
#endif
}
inline unsigned set_apart(Quantum*, Quantum*) { return 0; }

#else

constexpr const char* kInstructionSet = "avx2";
constexpr bool kSaturates = true;
constexpr int kOtherRegisters = 1;

alignas(32) inline constexpr std::int16_t kOnes[16] = {1, 1, 1, 1, 1, 1, 1, 1,
                                                       1, 1, 1, 1, 1, 1, 1, 1};
inline void dot_four(Sums& sum, Weights weights, Activations activations) {
  __m256i pairs;
  asm("vpmaddubsw %3, %2, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"
      : "+x"(sum), "=&x"(pairs)
      : "x"(weights), "x"(activations), "m"(kOnes));
}
// 255 times two activations of one sign is less than 2^15 where they are 128 together.
inline unsigned set_apart(Quantum* row, Quantum* rest) {
  const __m256i all = load_bytes(row), limit = _mm256_set1_epi8(64);
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), all);
  const __m256i is_much = _mm256_cmpgt_epi16(_mm256_abs_epi16(pairs), _mm256_set1_epi16(128));
  const __m256i part = _mm256_max_epi8(_mm256_min_epi8(all, limit), _mm256_sub_epi8(zero_sums(), limit));
  const __m256i apart = _mm256_and_si256(part, is_much);
  _mm256_store_si256(reinterpret_cast<__m256i*>(rest), apart);
  _mm256_store_si256(reinterpret_cast<__m256i*>(row), _mm256_sub_epi8(all, apart));
  const __m256i is_whole = _mm256_cmpeq_epi32(apart, zero_sums());
  return ~static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(is_whole))) & 0xFF;
}

#endif

// What `dot_four` has summed, without Σ 128 q.
inline Ints without(Ints sum, std::int32_t excess) {
  const __m256i every = _mm256_set1_epi32(excess);
  return {_mm256_sub_epi32(sum.low, every), _mm256_sub_epi32(sum.high, every)};
}

// Eight registers to the sum of each, in their order.
inline void sums_of(const Sums* from, std::int32_t* to) {
  const auto fours = [](const Sums* four) {
    return _mm256_hadd_epi32(_mm256_hadd_epi32(four[0], four[1]),
                             _mm256_hadd_epi32(four[2], four[3]));
  };
  const __m256i first_four = fours(from), last_four = fours(from + 4);
  store_sums(to, _mm256_add_epi32(_mm256_permute2x128_si256(first_four, last_four, 0x20),
                                  _mm256_permute2x128_si256(first_four, last_four, 0x31)));
}

}  // namespace dragoman
