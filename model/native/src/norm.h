// How rows are normalised: numbers alone. What normalises with them is rows.h.
#pragma once

#include "memory.h"

namespace dragoman {

// How a layer or a stack normalises: LayerNorm, or RMSNorm (no mean, no bias).
struct Norm {
  Buffer<float> weight;
  Buffer<float> bias;
  int width = 0;
  float epsilon = 0.0f;
  bool is_rms = false;

  Norm(const float* weight, const float* bias, int width, float epsilon, bool is_rms);
};

}  // namespace dragoman
