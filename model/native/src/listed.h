// Products of rows with listed outputs, whose weights lie output by output (shortlist.h).
#pragma once

#include <algorithm>

#include "gemm.h"
#include "shortlist.h"

namespace dragoman {

// The products of R rows from `begin` on with one panel of a list, still as integers.
template <int R>
struct ListedBlock {
  static constexpr int kRows = R;

  ListedBlock(const List& list, const QuantisedRows& rows, int begin, int panel)
      : list(list), rows(rows), begin(begin), panel(panel) {}

  const List& list;
  const QuantisedRows& rows;
  int begin, panel;
  alignas(64) std::int32_t sum[R][kPanel];

  int num_outputs() const { return list.num_tokens(); }

  // The 64 outputs of row `begin + r`, as those of a `Block`.
  void outputs(int r, Floats* value) const {
    const int place = panel * kPanel;
    to_outputs(rows, begin + r, sum[r], list.scale.data() + place, list.bias.data() + place, value);
  }
};

// The sums of R rows with as many outputs as there are registers for, row by row.
template <int R, int... I>
inline void dot_listed(const Quantum* rows, std::ptrdiff_t stride,
                       const std::uint8_t* const* weights, int num_bytes, std::int32_t* to,
                       std::integer_sequence<int, I...> indices) {
  constexpr int kOutputs = kRowSums / R;
  Sums sum[kRowSums] = {((void)I, zero_sums())...};
  for (int at = 0; at < num_bytes; at += kSumBytes) {
    add_products<R, kOutputs, kWeightRegisters * kOutputs <= R>(
        sum, [&](int output) { return load_weights(weights[output] + at); },
        [&](int row) { return load_activations(rows + row * stride + at); }, indices);
  }
  sums_of(sum, to);
}

// Adds the products of what was set apart of a row, with 64 outputs, to the row's sums.
template <int... I>
inline void add_listed_rest(const QuantisedRows& rows, int row, const std::uint8_t* const* weights,
                            std::int32_t* sums, std::integer_sequence<int, I...>) {
  if (rows.quads_of_rest(row).empty()) return;
  for (int first = 0; first < kPanel; first += kRowSums) {
    Sums sum[kRowSums] = {((void)I, zero_sums())...};
    int done = 0;  // bytes of the row
    for (const int quad : rows.quads_of_rest(row)) {
      if (quad * 4 < done) continue;
      const int at = quad * 4 / kSumBytes * kSumBytes;
      const Activations activations = load_activations(rows.rest(row) + at);
      (dot_four(sum[I], load_weights(weights[first + I] + at), activations), ...);
      done = at + kSumBytes;
    }
    alignas(64) std::int32_t found[kRowSums];
    sums_of(sum, found);
    ((sums[first + I] += found[I]), ...);
  }
}

template <int R, class Sink>
inline void multiply_listed(const List& list, int panel, int row_bytes, const QuantisedRows& rows,
                            int begin, Sink& sink) {
  constexpr int kOutputs = kRowSums / R;
  ListedBlock<R> block(list, rows, begin, panel);
  for (int first = 0; first < kPanel; first += kOutputs) {
    alignas(64) std::int32_t sums[R][kOutputs];
    dot_listed<R>(rows.row(begin), rows.stride, list.rows.data() + panel * kPanel + first,
                  row_bytes, sums[0], std::make_integer_sequence<int, kRowSums>());
    for (int r = 0; r < R; ++r) std::copy_n(sums[r], kOutputs, block.sum[r] + first);
  }
  if constexpr (kSaturates) {
    for (int r = 0; r < R; ++r) {
      add_listed_rest(rows, begin + r, list.rows.data() + panel * kPanel, block.sum[r],
                      std::make_integer_sequence<int, kRowSums>());
    }
  }
  sink(block);
}

// Rows `begin` to `end` with one panel of a list.
template <class Sink>
inline void multiply_listed_rows(const List& list, int panel, int row_bytes,
                                 const QuantisedRows& rows, int begin, int end, Sink& sink) {
  for (; begin + 4 <= end; begin += 4) multiply_listed<4>(list, panel, row_bytes, rows, begin, sink);
  if (begin + 2 <= end) {
    multiply_listed<2>(list, panel, row_bytes, rows, begin, sink);
    begin += 2;
  }
  if (begin < end) multiply_listed<1>(list, panel, row_bytes, rows, begin, sink);
}

}  // namespace dragoman
