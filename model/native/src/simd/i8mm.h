// Products of i8mm: sums of two rows and more with some outputs of a panel.
//
// `usmmla` multiplies eight inputs of two outputs by eight inputs of two rows: twice what `usdot` does,
// and 2 × 2 sums in a register. Weights lie four inputs at a time, so eight inputs of an output come
// from two places, put together for all rows that they meet. The last row of an odd number meets them
// twice.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "neon.h"

namespace dragoman {

constexpr bool kHasRowPairs = true;
constexpr int kQuadBytes = 4 * 64;        // four inputs of a panel's outputs
constexpr std::ptrdiff_t kSumStride = 64;  // from the sums of a row to those of the next one

// Eight inputs of two rows, from one row on and from another one.
inline int8x16_t eight_of_two(const Quantum* first, const Quantum* second) {
  return vcombine_s8(vld1_s8(first), vld1_s8(second));
}

// Adds eight inputs, weights of which are `low` (the first four of four outputs) and `high`, to the
// sums of two outputs each with P pairs of rows.
template <int... P>
[[gnu::always_inline]] inline void add_eight(Sums* sum, uint8x16_t low, uint8x16_t high,
                                             const int8x16_t* rows,
                                             std::integer_sequence<int, P...>) {
  const uint32x4_t first_four = vreinterpretq_u32_u8(low), last_four = vreinterpretq_u32_u8(high);
  const uint8x16_t outputs[2] = {vreinterpretq_u8_u32(vzip1q_u32(first_four, last_four)),
                                 vreinterpretq_u8_u32(vzip2q_u32(first_four, last_four))};
  ((sum[2 * P] = vusmmlaq_s32(sum[2 * P], outputs[0], rows[P]),
    sum[2 * P + 1] = vusmmlaq_s32(sum[2 * P + 1], outputs[1], rows[P])),
   ...);
}

// The integer sums of R rows with V registers of outputs, stored row by row: Σ (w + 128) q, as of
// `dot_four`. What follows the inputs of a row is zero; what follows those of weights is not theirs.
template <int R, int V, bool kFetches, int... I, int... P>
inline void dot_row_pairs(const Quantum* rows, std::ptrdiff_t stride, const std::uint8_t* panel,
                          int num_quads, std::int32_t* to, std::integer_sequence<int, I...>,
                          std::integer_sequence<int, P...> pairs) {
  constexpr int kPairs = sizeof...(P);
  const auto second_of = [](int pair) { return std::min(2 * pair + 1, R - 1); };
  Sums sum[V][2 * kPairs] = {};
  const auto add = [&](const auto& last_four) {
    const int8x16_t activations[] = {
        eight_of_two(rows + 2 * P * stride, rows + second_of(P) * stride)...};
    (add_eight(sum[I], load_weights(panel + I * 16), last_four(I), activations, pairs), ...);
    panel += 2 * kQuadBytes;
    rows += 8;
  };
  for (int quad = 2; quad <= num_quads; quad += 2) {
    if constexpr (kFetches) {
      for (int at = 0; at < 2 * kQuadBytes; at += 64) {
        __builtin_prefetch(panel + 16 * kQuadBytes + at);
      }
    }
    add([&](int vector) { return load_weights(panel + kQuadBytes + vector * 16); });
  }
  if (num_quads % 2 != 0) add([](int) { return vdupq_n_u8(0); });
  const auto store_pair = [&](int vector, int pair) {
    const Sums first = sum[vector][2 * pair], last = sum[vector][2 * pair + 1];
    std::int32_t* place = to + vector * kSumLanes;
    store_sums(place + 2 * pair * kSumStride, vuzp1q_s32(first, last));
    store_sums(place + second_of(pair) * kSumStride,
               2 * pair + 1 < R ? vuzp2q_s32(first, last) : vuzp1q_s32(first, last));
  };
  for (int vector = 0; vector < V; ++vector) (store_pair(vector, P), ...);
}

template <int R, int V, bool kFetches>
inline void dot_row_pairs(const Quantum* rows, std::ptrdiff_t stride, const std::uint8_t* panel,
                          int num_quads, std::int32_t* to) {
  dot_row_pairs<R, V, kFetches>(rows, stride, panel, num_quads, to,
                                std::make_integer_sequence<int, V>(),
                                std::make_integer_sequence<int, (R + 1) / 2>());
}

}  // namespace dragoman
