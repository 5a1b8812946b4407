// Phrases that a translation has to contain, and how far a hypothesis has come with them.
//
// The definition is model/phrases.py: a trie of all alternatives, and the phrases met as bits. A phrase
// that is met sends the hypothesis back to the root, so a token serves one phrase.
#pragma once

#include <cstdint>
#include <vector>

namespace dragoman {

using Path = std::vector<std::int64_t>;
// A phrase: sequences of tokens, one of which has to be there.
using Alternatives = std::vector<Path>;

// Of a hypothesis: the node that its last tokens lead to, and the phrases it has met.
struct PhraseState {
  int node = 0;
  std::uint32_t met = 0;
};

class Phrases {
 public:
  static constexpr int kMaxPhrases = 16;
  static constexpr int kMaxTokens = 64;  // of all alternatives

  Phrases() = default;
  explicit Phrases(std::vector<Alternatives> phrases);

  bool empty() const { return full_ == 0; }
  // The tokens that are in any alternative, ascending.
  const Path& words() const { return words_; }
  PhraseState after(PhraseState state, std::int64_t token) const;
  bool is_full(PhraseState state) const { return state.met == full_; }
  bool is_begun(PhraseState state) const { return (goals_[state.node] & ~state.met) != 0; }
  // Tokens of phrases that are met or begun, below 2 * kMaxTokens.
  int bank(PhraseState state) const;
  int num_missed(PhraseState state) const;

 private:
  int node_after(const Path& tokens) const;
  void add(std::uint32_t bit, const Path& path);

  std::vector<Path> nodes_;  // of the trie, by number; the root is the first
  Path words_;
  std::vector<std::vector<int>> go_;  // by node and word
  std::vector<std::uint32_t> ends_, goals_;
  std::vector<int> weights_;  // by phrase: tokens of its longest alternative
  std::uint32_t full_ = 0;
};

}  // namespace dragoman
