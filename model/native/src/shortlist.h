// Lexical shortlists: which target tokens a sentence may choose, and the output projection of these
// alone.
//
// The definition of the set is model/shortlist.py. A set belongs to one sentence, and its weights
// are packed once, when the sentence is admitted; so what runs beside it changes nothing.
#pragma once

#include "network.h"
#include "team.h"

namespace dragoman {

// What one sentence may choose from. Places in the list are in the order of tokens.
struct List {
  std::vector<std::int32_t> tokens;         // ascending
  std::vector<std::uint8_t> is_suppressed;  // by place
  Matrix matrix;                            // output `i` is that of `tokens[i]`
  Buffer<std::byte> memory;                 // where the matrix lies
};

// A table of target tokens by source token. Belongs to one thread.
class Shortlist {
 public:
  // `offsets` has one number more than there are source tokens: where each one's tokens begin in
  // `ids`. Raises std::invalid_argument where a number is none of the network's.
  Shortlist(std::shared_ptr<Network> network, std::vector<std::int32_t> always,
            std::vector<std::int32_t> offsets, std::vector<std::int32_t> ids, bool with_source);

  // Chooses the tokens of a sentence: those of its source tokens, and those of `also`.
  void choose(const std::vector<std::int32_t>& source, const std::vector<std::int64_t>& also,
              List& list);

  // Packs the weights of lists whose tokens are chosen.
  void pack(Team& team, const std::vector<List*>& lists) const;

  const Network& network() const { return *network_; }

 private:
  void check() const;
  void add(std::int64_t token);

  std::shared_ptr<Network> network_;
  std::vector<std::int32_t> always_, offsets_, ids_;
  bool with_source_;
  OutputRows rows_;
  std::vector<std::uint8_t> is_listed_;  // by target token; all zero between two sentences
  std::size_t num_listed_ = 0;
};

}  // namespace dragoman
