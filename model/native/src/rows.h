// Rows of activations: as floats, and as int8 with one scale a row.
//
// The scale is the row's own, so quantisation keeps rows apart: what stands beside a sentence in
// a batch cannot change a bit of it.
#pragma once

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
struct QuantisedRows {
  Buffer<Quantum> values;
  Buffer<float> scale;
  Buffer<std::int32_t> excess;
  int stride = 0;

  void reserve(int num_rows, int width) {
    stride = round_up(width, 64);
    values.reserve(std::size_t(num_rows) * stride);
    scale.reserve(num_rows);
    excess.reserve(num_rows);
  }
  const Quantum* row(int index) const { return values.data() + std::size_t(index) * stride; }

  // Quantises `width` floats into row `index`; what follows them up to the stride becomes zero.
  // A row that is not finite gets a scale that is not finite, so nothing hides it.
  void quantise(int index, const float* from, int width);
};

// Normalises one row; `to` may be `from`.
void normalise(const Norm& norm, const float* from, float* to);

}  // namespace dragoman
