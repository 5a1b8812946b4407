#include "sampling.h"

#include <algorithm>
#include <cmath>

namespace dragoman {
namespace {

// splitmix64 (Steele, Lea and Flood 2014) at a counter.
std::uint64_t mixed(std::uint64_t state, std::int64_t counter) {
  std::uint64_t bits = state + (static_cast<std::uint64_t>(counter) + 1) * 0x9E3779B97F4A7C15u;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
  return bits ^ (bits >> 31);
}

// Of 64 bits 52 make a number between 0 and 1.
double gumbel_noise(std::uint64_t bits) {
  const double uniform = (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
  return -std::log(-std::log(uniform));
}

}  // namespace

int sample(const Sampling& sampling, Draw draw, const float* log_probs, const std::int64_t* tokens,
           int num) {
  num = std::min(num, sampling.top_k);
  const auto weight = [&](int i) {
    return std::exp((static_cast<double>(log_probs[i]) - log_probs[0]) / sampling.temperature);
  };
  double total = 0.0;
  for (int i = 0; i < num; ++i) total += weight(i);
  const std::uint64_t seed = mixed(mixed(sampling.seed, draw.beam), draw.step);
  const bool keeps_all = sampling.top_p >= 1.0;
  int drawn = 0;
  double best = -INFINITY, before = 0.0;
  for (int i = 0; i < num && (keeps_all || before < sampling.top_p * total); ++i) {
    before += weight(i);
    const double noisy =
        log_probs[i] / sampling.temperature + gumbel_noise(mixed(seed, tokens[i]));
    if (noisy > best) {
      best = noisy;
      drawn = i;
    }
  }
  return drawn;
}

}  // namespace dragoman
