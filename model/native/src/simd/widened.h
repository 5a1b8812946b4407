// Weights of AVX2 without VNNI, widened once for many rows.
//
// Before they are added to activations (avx2.h), bytes become numbers of 16 bits: four instructions for
// every four inputs of 16 outputs, beside 32 that multiply them by four rows. With many rows they are
// widened once, into memory that the first cache keeps: 16 outputs and 512 inputs at a time, which then
// meet all rows. So a step of the loop is 32 instructions of vectors and twelve loads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "avx2.h"

namespace dragoman {

constexpr bool kHasTiles = true;
constexpr int kTileRows = 64;       // rows worked on together
constexpr int kLeastTileRows = 24;  // with fewer, widening takes what it saves

constexpr int kWideVectors = 2;   // registers of sums of a row
constexpr int kWideQuads = 128;   // four inputs each, widened together: 16 KiB
constexpr int kQuadBytes = 4 * 64;  // of a panel's outputs
constexpr int kSumStride = 64;    // from the sums of a row to those of the next one

// 16 outputs of so many fours of inputs. The first 16 fetch what the others of the panel want soon: each
// reads one line of every four.
inline void widen(const std::uint8_t* panel, int num_quads, bool fetches, Weights* to) {
  constexpr int kAheadBytes = 16 * kQuadBytes;
  for (int quad = 0; quad < num_quads; ++quad) {
    if (fetches) {
      for (int at = 0; at < kQuadBytes; at += 64) __builtin_prefetch(panel + kAheadBytes + at);
    }
    for (int v = 0; v < kWideVectors; ++v) *to++ = load_weights(panel + v * 4 * kSumLanes);
    panel += kQuadBytes;
  }
}

// Adds the products of R rows with widened weights to sums in memory, or puts them there. Indices are
// spelled out at compile time (`I` counts sums), as for all products.
template <int R, int... I>
inline void add_widened(const Quantum* rows, std::ptrdiff_t stride, const Weights* weights,
                        int num_quads, bool is_first, std::int32_t* to,
                        std::integer_sequence<int, I...>) {
  constexpr int V = kWideVectors;
  const auto place = [to](int index) { return to + index / V * kSumStride + index % V * kSumLanes; };
  Sums sum[R * V] = {(is_first ? zero_sums() : load_bytes(place(I)))...};
  for (int quad = 0; quad < num_quads; ++quad) {
    Activations activations{};
    ((activations = I % V == 0 ? four_activations(rows + I / V * stride) : activations,
      dot_four(sum[I], weights[I % V], activations)),
     ...);
    weights += V;
    rows += 4;
  }
  (store_sums(place(I), sum[I]), ...);
}

// The rows that are left when there is no whole block: at most R.
template <int R>
inline void add_rest(const Quantum* rows, std::ptrdiff_t stride, int num_rows, const Weights* weights,
                     int num_quads, bool is_first, std::int32_t* to) {
  if constexpr (R > 0) {
    if (num_rows < R) return add_rest<R - 1>(rows, stride, num_rows, weights, num_quads, is_first, to);
    add_widened<R>(rows, stride, weights, num_quads, is_first, to,
                   std::make_integer_sequence<int, R * kWideVectors>());
  }
}

// The integer sums of up to 64 rows with a panel, stored row by row.
inline void sums_in_tiles(const Quantum* rows, std::ptrdiff_t stride, int num_rows,
                          const std::uint8_t* panel, int num_quads, std::int32_t* to) {
  Weights weights[kWideVectors * kWideQuads];
  for (int done = 0; done < num_quads; done += kWideQuads) {
    const int num = std::min(kWideQuads, num_quads - done);
    for (int first = 0; first < kSumStride; first += kWideVectors * kSumLanes) {
      widen(panel + std::ptrdiff_t(done) * kQuadBytes + 4 * first, num, first == 0, weights);
      const Quantum* from = rows + 4 * done;
      std::int32_t* sums = to + first;
      for (int left = num_rows; left > 0; left -= kBlockRows) {
        add_rest<kBlockRows>(from, stride, left, weights, num, done == 0, sums);
        from += kBlockRows * stride;
        sums += kBlockRows * kSumStride;
      }
    }
  }
}

}  // namespace dragoman
