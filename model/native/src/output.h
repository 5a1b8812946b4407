// The output projection, its softmax and the best tokens in one pass: no row of logits is ever
// written down.
#pragma once

#include "listed.h"
#include "ranking.h"

namespace dragoman {

// The rows of a step that choose from one list.
struct ListedRows {
  const List* list;
  int begin, end;
};

// All rows of a step, list by list.
struct ListedStep {
  std::vector<ListedRows> lists;
  int row_bytes;  // of the weights of an output
};

class OutputLayer {
 public:
  OutputLayer(const Network& network, Team& team) : network_(network), team_(team) {}

  // What a step wants of it.
  //
  // The `num_candidates` likeliest tokens of every row, best first, the smaller token first
  // among equals; places that no token can fill hold minus infinity and token 0.
  // `log_probs` and `tokens` are (num_rows, num_candidates). `masks`, if given, has for every row
  // which tokens it may not choose, in place of the network's. `listed`, if given, says what every row
  // chooses from: then there are masks, by place in the list, and a probability is that of its list.
  struct Wanted {
    int num_rows, num_candidates;
    const std::uint8_t* const* masks;
    const ListedStep* listed;
    float* log_probs;
    std::int64_t* tokens;
  };

  // Before the shares of a step.
  void begin(const Wanted& wanted);
  // Whether a thread should take its own rows through it. The weights of a large one would come from the
  // memory once a share, and lists are all threads' work.
  bool is_for_shares() const;
  // The likeliest tokens of a share's rows.
  void best(const Share& share, const QuantisedRows& rows);

  // The log probabilities of `num` tokens for one of the rows that `best` had since `begin`, bit for bit as
  // it has them. `list` is what the row chose from, all of the tokens among it; null: from all.
  void log_probs_of(const QuantisedRows& rows, int row, const List* list,
                    const std::int64_t* tokens, int num, float* log_probs) const;

 private:
  Ranking ranking(int thread, int row);
  void merge(int row, int num_panels);
  float log_normaliser(int row, int num_panels) const;
  float logit(const QuantisedRows& rows, int row, std::int64_t token) const;

  const Network& network_;
  Team& team_;
  Wanted wanted_{};
  Buffer<float> peaks_, sums_;  // (rows, panels): largest logit, Σ e^(logit - largest)
  Buffer<float> logits_;        // (threads, rows, candidates)
  Buffer<std::int32_t> tokens_;
};

}  // namespace dragoman
