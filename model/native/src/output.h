// The output projection, its softmax and the best tokens in one pass: no row of logits is ever
// written down.
#pragma once

#include "network.h"

namespace dragoman {

// A list of tokens by falling logit, the smaller token first among equals, in whatever order they
// come. A place that is empty holds minus infinity.
struct Ranking {
  float* logits;
  std::int32_t* tokens;
  int size;

  void insert(float logit, std::int32_t token);
};

class OutputLayer {
 public:
  OutputLayer(const Network& network, Team& team) : network_(network), team_(team) {}

  // The `num_candidates` likeliest tokens of every row, best first, the smaller token first
  // among equals; places that no token can fill hold minus infinity and token 0.
  // `log_probs` and `tokens` are (num_rows, num_candidates). `masks`, if given, has for every row
  // which tokens it may not choose, in place of the network's.
  void best(const QuantisedRows& rows, int num_rows, int num_candidates,
            const std::uint8_t* const* masks, float* log_probs, std::int64_t* tokens);

 private:
  Ranking ranking(int thread, int row, int num_rows, int num_candidates);
  void rank(const __m512* value, int panel, const std::uint8_t* is_suppressed,
            Ranking& ranked) const;
  void merge(int row, int num_rows, int num_candidates, float* log_probs, std::int64_t* tokens);
  float log_normaliser(int row) const;

  const Network& network_;
  Team& team_;
  Buffer<float> peaks_, sums_;  // (rows, panels): largest logit, Σ e^(logit - largest)
  Buffer<float> logits_;        // (threads, rows, candidates)
  Buffer<std::int32_t> tokens_;
};

}  // namespace dragoman
