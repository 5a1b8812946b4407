// Lexical shortlists: which target tokens a sentence may choose, and the output projection of these
// alone.
//
// The definition of the set is model/shortlist.py. A set belongs to one sentence, and sums are exact
// integers, so what runs beside it changes nothing. Weights are read where they are, an output in
// one piece, and not packed for each sentence: sentences that run together have many tokens in
// common, which then stay in the caches, and a list costs next to nothing when it is made.
#pragma once

#include "network.h"
#include "team.h"

namespace dragoman {

// What one sentence may choose from. Places in the list are in the order of tokens; those up to the
// next whole panel are padding, which nothing chooses.
struct List {
  std::vector<std::int32_t> tokens;         // ascending
  std::vector<std::uint8_t> is_suppressed;  // by place
  std::vector<const std::uint8_t*> rows;    // by place, padding included: the weights + 128
  Buffer<float> scale, bias;                // likewise

  int num_tokens() const { return static_cast<int>(tokens.size()); }
  int num_panels() const { return (num_tokens() + kPanel - 1) / kPanel; }
};

// A table of target tokens by source token. Belongs to one thread.
class Shortlist {
 public:
  // `offsets` has one number more than there are source tokens: where each one's tokens begin in
  // `ids`. Raises std::invalid_argument where a number is none of the network's.
  Shortlist(std::shared_ptr<Network> network, std::vector<std::int32_t> always,
            std::vector<std::int32_t> offsets, std::vector<std::int32_t> ids, bool with_source);

  // Makes the list of a sentence: the tokens of its source tokens, and those of `also`.
  void choose(const std::vector<std::int32_t>& source, const std::vector<std::int64_t>& also,
              List& list);

  // Bytes of one output's weights, in whole vectors.
  int row_bytes() const { return row_bytes_; }
  const Network& network() const { return *network_; }

 private:
  void check() const;
  void add(std::int64_t token);
  void find_weights(List& list) const;

  std::shared_ptr<Network> network_;
  std::vector<std::int32_t> always_, offsets_, ids_;
  bool with_source_;
  int row_bytes_;
  Buffer<std::uint8_t> rows_;            // the output projection, output by output
  std::vector<std::uint8_t> is_listed_;  // by target token; all zero between two sentences
  std::size_t num_listed_ = 0;
};

}  // namespace dragoman
