// Vectors of NEON: four registers have sixteen numbers. With dot products four bytes are multiplied
// and summed by one instruction, with i8mm unsigned by signed ones, too; its products of matrices are
// i8mm.h's.
#pragma once

#include <arm_neon.h>

#include <cstring>

#include "../sizes.h"
#include "bytes.h"

namespace dragoman {

struct Floats {
  float32x4_t of[4];
};
struct Ints {
  int32x4_t of[4];
};
struct Doubles {  // eight sums of doubles
  float64x2_t of[4];
};

// What an operation makes of each register, and of the same one of other vectors.
template <class Op, class... X>
inline auto each(const Op& op, const X&... x) {
  return Floats{{op(x.of[0]...), op(x.of[1]...), op(x.of[2]...), op(x.of[3]...)}};
}
template <class Op, class... X>
inline Ints each_int(const Op& op, const X&... x) {
  return Ints{{op(x.of[0]...), op(x.of[1]...), op(x.of[2]...), op(x.of[3]...)}};
}
using Four = float32x4_t;

inline Floats all(float x) {
  const Four four = vdupq_n_f32(x);
  return {{four, four, four, four}};
}
inline Floats zeros() { return all(0.0f); }
inline Floats load(const float* from) {
  return {{vld1q_f32(from), vld1q_f32(from + 4), vld1q_f32(from + 8), vld1q_f32(from + 12)}};
}
inline void store(float* to, const Floats& x) {
  vst1q_f32(to, x.of[0]);
  vst1q_f32(to + 4, x.of[1]);
  vst1q_f32(to + 8, x.of[2]);
  vst1q_f32(to + 12, x.of[3]);
}
// Of the first `num` lanes, all of them from 16 on; the others are zero, or are not written.
inline Floats load_first(const float* from, int num) {
  if (num >= kLanes) return load(from);
  float part[kLanes] = {};
  std::memcpy(part, from, num * sizeof(float));
  return load(part);
}
inline void store_first(float* to, const Floats& x, int num) {
  if (num >= kLanes) return store(to, x);
  float part[kLanes];
  store(part, x);
  std::memcpy(to, part, num * sizeof(float));
}
inline Floats keep_first(const Floats& x, int num) {
  if (num >= kLanes) return x;
  float part[kLanes];
  store(part, x);
  return load_first(part, num);
}

inline Floats add(const Floats& a, const Floats& b) {
  return each([](Four p, Four q) { return vaddq_f32(p, q); }, a, b);
}
inline Floats sub(const Floats& a, const Floats& b) {
  return each([](Four p, Four q) { return vsubq_f32(p, q); }, a, b);
}
inline Floats mul(const Floats& a, const Floats& b) {
  return each([](Four p, Four q) { return vmulq_f32(p, q); }, a, b);
}
inline Floats div(const Floats& a, const Floats& b) {
  return each([](Four p, Four q) { return vdivq_f32(p, q); }, a, b);
}
// a b + c and c - a b, rounded once.
inline Floats mul_add(const Floats& a, const Floats& b, const Floats& c) {
  return each([](Four p, Four q, Four r) { return vfmaq_f32(r, p, q); }, a, b, c);
}
inline Floats sub_mul(const Floats& c, const Floats& a, const Floats& b) {
  return each([](Four r, Four p, Four q) { return vfmsq_f32(r, p, q); }, c, a, b);
}
// a > b ? a : b and a < b ? a : b; so b where either is no number.
inline Four larger_four(Four a, Four b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
inline Floats larger(const Floats& a, const Floats& b) { return each(larger_four, a, b); }
inline Floats smaller(const Floats& a, const Floats& b) {
  return each([](Four p, Four q) { return vbslq_f32(vcltq_f32(p, q), p, q); }, a, b);
}
// `larger` in the first `num` lanes, `a` in the others.
inline Floats larger_of_first(const Floats& a, const Floats& b, int num) {
  const Floats most = larger(a, b);
  if (num >= kLanes) return most;
  float part[kLanes], chosen[kLanes];
  store(part, a);
  store(chosen, most);
  std::memcpy(part, chosen, num * sizeof(float));
  return load(part);
}
inline Floats magnitude(const Floats& x) {
  return each([](Four p) { return vabsq_f32(p); }, x);
}
inline Floats where_negative(const Floats& x, const Floats& yes, const Floats& no) {
  return each([](Four p, Four q, Four r) { return vbslq_f32(vcltzq_f32(p), q, r); }, x, yes, no);
}
// Halves go to the even number.
inline Floats nearest(const Floats& x) {
  return each([](Four p) { return vrndnq_f32(p); }, x);
}
// x 2^whole, both it and 2^whole normal numbers.
inline Floats times_power_of_two(const Floats& x, const Floats& whole) {
  const auto times = [](Four p, Four power) {
    const int32x4_t exponent = vaddq_s32(vcvtnq_s32_f32(power), vdupq_n_s32(127));
    return vmulq_f32(p, vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23)));
  };
  return each(times, x, whole);
}
// Bit by bit, which lanes of `a` are at least those of `b`.
inline unsigned at_least(const Floats& a, const Floats& b) {
  const uint32x4_t bits = {1, 2, 4, 8};
  unsigned found = 0;
  for (int i = 0; i < 4; ++i) {
    found |= vaddvq_u32(vandq_u32(vcgeq_f32(a.of[i], b.of[i]), bits)) << (4 * i);
  }
  return found;
}

inline float sum_of(const Floats& x) {
  const Four four =
      vaddq_f32(vaddq_f32(x.of[0], x.of[2]), vaddq_f32(x.of[1], x.of[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
inline float largest_of(const Floats& x) {
  const Four four =
      larger_four(larger_four(x.of[0], x.of[2]), larger_four(x.of[1], x.of[3]));
  const auto larger_one = [](float a, float b) { return a > b ? a : b; };
  return larger_one(larger_one(vgetq_lane_f32(four, 0), vgetq_lane_f32(four, 2)),
                    larger_one(vgetq_lane_f32(four, 1), vgetq_lane_f32(four, 3)));
}

inline Floats load_half(const half* from) {
  const auto four = [](const half* place) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(place)));
  };
  return {{four(from), four(from + 4), four(from + 8), four(from + 12)}};
}
inline void store_half(half* to, const Floats& x) {
  for (int i = 0; i < 4; ++i) vst1_u16(to + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(x.of[i])));
}

inline Ints all_ints(std::int32_t x) {
  const int32x4_t four = vdupq_n_s32(x);
  return {{four, four, four, four}};
}
inline Ints zero_ints() { return all_ints(0); }
inline Ints load_ints(const std::int32_t* from) {
  return {{vld1q_s32(from), vld1q_s32(from + 4), vld1q_s32(from + 8), vld1q_s32(from + 12)}};
}
inline Ints add_ints(const Ints& a, const Ints& b) {
  return each_int([](int32x4_t p, int32x4_t q) { return vaddq_s32(p, q); }, a, b);
}
inline Ints larger_int(const Ints& a, const Ints& b) {
  return each_int([](int32x4_t p, int32x4_t q) { return vmaxq_s32(p, q); }, a, b);
}
// The nearest integers; the smallest one for what is none.
inline Ints to_ints(const Floats& x) {
  const auto four = [](Four p) {
    const uint32x4_t is_one = vcaltq_f32(p, vdupq_n_f32(0x1p31f));
    return vbslq_s32(is_one, vcvtnq_s32_f32(p), vdupq_n_s32(INT32_MIN));
  };
  return each_int(four, x);
}
inline Floats to_floats(const Ints& x) {
  return each([](int32x4_t p) { return vcvtq_f32_s32(p); }, x);
}
// The bits of |x|: ordered as numbers are, with infinity and NaN on top.
inline Ints magnitude_bits(const Floats& x) {
  return each_int([](Four p) { return vreinterpretq_s32_f32(vabsq_f32(p)); }, x);
}
inline std::int32_t sum_of(const Ints& x) {
  return vaddvq_s32(vaddq_s32(vaddq_s32(x.of[0], x.of[1]), vaddq_s32(x.of[2], x.of[3])));
}
inline std::int32_t largest_of(const Ints& x) {
  return vmaxvq_s32(vmaxq_s32(vmaxq_s32(x.of[0], x.of[1]), vmaxq_s32(x.of[2], x.of[3])));
}
// Sixteen integers of -128 … 127 to bytes.
inline void store_quanta(Quantum* to, const Ints& x) {
  const int16x8_t low = vcombine_s16(vmovn_s32(x.of[0]), vmovn_s32(x.of[1]));
  const int16x8_t high = vcombine_s16(vmovn_s32(x.of[2]), vmovn_s32(x.of[3]));
  vst1q_s8(to, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}

inline Doubles zero_doubles() {
  const float64x2_t two = vdupq_n_f64(0.0);
  return {{two, two, two, two}};
}
// The first eight floats, then the last eight.
inline Doubles add_floats(Doubles sum, const Floats& x) {
  for (int i = 0; i < 4; ++i) {
    float64x2_t* to = sum.of + i % 2 * 2;
    to[0] = vaddq_f64(to[0], vcvt_f64_f32(vget_low_f32(x.of[i])));
    to[1] = vaddq_f64(to[1], vcvt_high_f64_f32(x.of[i]));
  }
  return sum;
}
inline double sum_of(const Doubles& x) {
  const float64x2_t two = vaddq_f64(vaddq_f64(x.of[0], x.of[2]), vaddq_f64(x.of[1], x.of[3]));
  return vgetq_lane_f64(two, 0) + vgetq_lane_f64(two, 1);
}

constexpr int kNumRegisters = 32;
constexpr int kValueVectors = 1;  // vectors of attention's values worked on together
constexpr int kBlockRows = 6;
constexpr int kSumLanes = 4;  // outputs of one `Sums`
constexpr int kWeightRegisters = 1, kOtherRegisters = 3;
constexpr bool kSaturates = false;
inline unsigned set_apart(Quantum*, Quantum*) { return 0; }

#if defined(__ARM_FEATURE_DOTPROD)

using Sums = int32x4_t;
constexpr int kRowSums = 16;  // sums of rows with listed outputs worked on together
// Sums of outputs worked on together, by rows that are.
constexpr int tile_vectors(int num_rows) { return num_rows <= 2 ? 8 : 4; }
inline Sums zero_sums() { return vdupq_n_s32(0); }
inline int32x4_t together(Sums sums) { return sums; }
inline void store_sums(std::int32_t* to, Sums sums) { vst1q_s32(to, sums); }

#else

// Two numbers an output, of the first two outputs and of the last two: what `vpadalq_s16` adds to.
struct Sums {
  int32x4_t low, high;
};
constexpr int kRowSums = 8;
constexpr int tile_vectors(int num_rows) { return num_rows <= 2 ? 4 : 2; }
inline Sums zero_sums() { return {vdupq_n_s32(0), vdupq_n_s32(0)}; }
inline int32x4_t together(const Sums& sums) { return vaddq_s32(sums.low, sums.high); }
inline void store_sums(std::int32_t* to, const Sums& sums) {
  vst1q_s32(to, vpaddq_s32(sums.low, sums.high));
}

#endif

using Activations = int8x16_t;  // q
inline Activations load_activations(const Quantum* from) { return vld1q_s8(from); }
inline Activations four_activations(const Quantum* from) {
  std::int32_t bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return vreinterpretq_s8_s32(vdupq_n_s32(bytes));
}

#if defined(__ARM_FEATURE_MATMUL_INT8)

constexpr const char* kInstructionSet = "neon-i8mm";

using Weights = uint8x16_t;  // w + 128
inline Weights load_weights(const std::uint8_t* from) { return vld1q_u8(from); }

// Σ (w + 128) q of four each.
inline void dot_four(Sums& sum, Weights weights, Activations activations) {
  sum = vusdotq_s32(sum, weights, activations);
}
// What has been summed, without Σ 128 q.
inline Ints without(const Ints& sum, std::int32_t excess) {
  const int32x4_t every = vdupq_n_s32(excess);
  return each_int([&](int32x4_t p) { return vsubq_s32(p, every); }, sum);
}

#else

using Weights = int8x16_t;  // w
inline Weights load_weights(const std::uint8_t* from) {
  return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(from), vdupq_n_u8(128)));
}

// Σ w q of four each.
#if defined(__ARM_FEATURE_DOTPROD)

constexpr const char* kInstructionSet = "neon-dotprod";

inline void dot_four(Sums& sum, Weights weights, Activations activations) {
  sum = vdotq_s32(sum, weights, activations);
}

#else

constexpr const char* kInstructionSet = "neon";

inline void dot_four(Sums& sum, Weights weights, Activations activations) {
  sum.low = vpadalq_s16(sum.low, vmull_s8(vget_low_s8(weights), vget_low_s8(activations)));
  sum.high = vpadalq_s16(sum.high, vmull_high_s8(weights, activations));
}

#endif

inline const Ints& without(const Ints& sum, std::int32_t) { return sum; }

#endif

// `kRowSums` of them to the sum of each, in their order.
inline void sums_of(const Sums* from, std::int32_t* to) {
  for (int i = 0; i < kRowSums; i += 4) {
    const int32x4_t first = vpaddq_s32(together(from[i]), together(from[i + 1]));
    const int32x4_t last = vpaddq_s32(together(from[i + 2]), together(from[i + 3]));
    vst1q_s32(to + i, vpaddq_s32(first, last));
  }
}

}  // namespace dragoman
