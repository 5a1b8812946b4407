// Rows of activations: as floats, and as int8 with one scale a row.
//
// The scale is the row's own, so quantisation keeps rows apart: what stands beside a sentence in
// a batch cannot change a bit of it.
#pragma once

#include <span>

#include "memory.h"
#include "norm.h"
#include "simd.h"

namespace dragoman {

// Floats, one row after another; widths are padded to whole panels of 64, the padding is zero
// wherever a kernel relies on it.
struct FloatRows {
  Buffer<float> values;
  int stride = 0;

  void reserve(int num_rows, int width) {
    stride = round_up(width, 64);
    values.reserve(std::size_t(num_rows) * stride);
  }
  float* row(int index) { return values.data() + std::size_t(index) * stride; }
  const float* row(int index) const { return values.data() + std::size_t(index) * stride; }
};

// Rows q with x ≈ scale · q, q in -127 … 127, laid out as the products read them, and what of their
// sums belongs to the row alone: the products take it away again (see gemm.h).
//
// Where two products are summed in 16 bits (`kSaturates`), neighbours that are more than 128 together
// lie in two parts, `values` and `rests`, of which neither can be too much. Few rows have many: of
// numbers with a normal distribution 2 % of the pairs.
struct QuantisedRows {
  Buffer<Quantum> values, rests;
  Buffer<float> scale;
  Buffer<std::int32_t> excess;
  Buffer<std::int32_t> num_rests, rest_quads;  // which fours of a row have rests, in their order
  int stride = 0;

  void reserve(int num_rows, int width) {
    stride = round_up(width, 64);
    values.reserve(std::size_t(num_rows) * stride);
    scale.reserve(num_rows);
    excess.reserve(num_rows);
    if constexpr (kSaturates) {
      rests.reserve(std::size_t(num_rows) * stride);
      num_rests.reserve(num_rows);
      rest_quads.reserve(std::size_t(num_rows) * stride / 4);
    }
  }
  const Quantum* row(int index) const { return values.data() + std::size_t(index) * stride; }
  const Quantum* rest(int index) const { return rests.data() + std::size_t(index) * stride; }
  std::span<const std::int32_t> quads_of_rest(int index) const {
    return {rest_quads.data() + std::size_t(index) * (stride / 4), std::size_t(num_rests[index])};
  }
  int quantum(int index, int input) const {
    return row(index)[input] + (kSaturates ? rest(index)[input] : 0);
  }

  // Quantises `width` floats into row `index`; what follows them up to the stride becomes zero.
  // A row that is not finite gets a scale that is not finite, so nothing hides it.
  void quantise(int index, const float* from, int width);

 private:
  void set_rest_apart(int index);
};

// Normalises one row; `to` may be `from`.
void normalise(const Norm& norm, const float* from, float* to);

}  // namespace dragoman
