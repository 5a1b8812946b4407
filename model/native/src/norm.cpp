#include "norm.h"

#include <algorithm>

namespace dragoman {

Norm::Norm(const float* weight_from, const float* bias_from, int width, float epsilon, bool is_rms)
    : width(width), epsilon(epsilon), is_rms(is_rms) {
  weight.reserve(width);
  bias.reserve(width);
  std::copy_n(weight_from, width, weight.data());
  if (bias_from != nullptr) {
    std::copy_n(bias_from, width, bias.data());
  } else {
    std::fill_n(bias.data(), width, 0.0f);
  }
}

}  // namespace dragoman
