// Sixteen floats at a time: the functions that the kernels share, over the vectors of whatever
// instruction set they are compiled for.
//
// Owns what is the same for all of them. A folder beside this file has one header an instruction
// set, which says what `Floats` (16 floats), `Ints` (16 integers) and the parts of an int8 product
// are made of. Whatever they are made of, a sum across a vector adds lanes 8 apart, then 4, 2 and 1,
// and products are fused with sums where it is written so and nowhere else: results are the same
// bits. Everything works on one row at a time and in a fixed order, so that a row's result never
// depends on what else is computed beside it.
#pragma once

#include "sizes.h"

#if defined(__AVX512BW__)
#include "simd/avx512.h"
#elif defined(__AVX2__)
#include "simd/avx2.h"
#elif defined(__aarch64__)
#include "simd/neon.h"
#else
#error "no vectors for this instruction set"
#endif

namespace dragoman {

constexpr int kSumBytes = 4 * kSumLanes;  // of weights, or of activations, that a register of sums takes at a time

inline Floats negated(Floats x) { return sub(zeros(), x); }

// e^x to about one unit in the last place; below -87 it stays at the smallest normal number.
// Range reduction and polynomial of Cephes' expf. NaN stays NaN: `larger` and `smaller` give their
// second operand then.
inline Floats exponential(Floats x) {
  x = larger(all(-87.3f), smaller(all(88.0f), x));
  const Floats whole = nearest(mul(x, all(1.44269504f)));
  Floats rest = sub_mul(x, whole, all(0.693359375f));
  rest = sub_mul(rest, whole, all(-2.12194440e-4f));
  Floats y = all(1.9875691500e-4f);
  y = mul_add(y, rest, all(1.3981999507e-3f));
  y = mul_add(y, rest, all(8.3334519073e-3f));
  y = mul_add(y, rest, all(4.1665795894e-2f));
  y = mul_add(y, rest, all(1.6666665459e-1f));
  y = mul_add(y, rest, all(5.0000001201e-1f));
  y = mul_add(y, mul(rest, rest), rest);
  return times_power_of_two(add(y, all(1.0f)), whole);
}

// 1 / (1 + e^-x).
inline Floats sigmoid(Floats x) {
  return div(all(1.0f), add(all(1.0f), exponential(negated(x))));
}

// The error function to 1.5e-7 (Abramowitz and Stegun, 7.1.26).
inline Floats error_function(Floats x) {
  const Floats one = all(1.0f);
  const Floats t = div(one, mul_add(magnitude(x), all(0.3275911f), one));
  Floats y = all(1.061405429f);
  y = mul_add(y, t, all(-1.453152027f));
  y = mul_add(y, t, all(1.421413741f));
  y = mul_add(y, t, all(-0.284496736f));
  y = mul_add(y, t, all(0.254829592f));
  y = mul(mul(y, t), exponential(negated(mul(x, x))));
  const Floats positive = sub(one, y);
  return where_negative(x, negated(positive), positive);
}

}  // namespace dragoman
