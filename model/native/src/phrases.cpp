#include "phrases.h"

#include <algorithm>
#include <bit>

namespace dragoman {
namespace {

std::size_t longest(const Alternatives& phrase) {
  std::size_t length = 0;
  for (const Path& path : phrase) length = std::max(length, path.size());
  return length;
}

Path end_of(const Path& path, std::size_t start) { return Path(path.begin() + start, path.end()); }

bool begins(const Path& path, const Path& begun) {
  return begun.size() <= path.size() && std::equal(begun.begin(), begun.end(), path.begin());
}

}  // namespace

Phrases::Phrases(std::vector<Alternatives> phrases) : nodes_{{}} {
  std::stable_sort(phrases.begin(), phrases.end(), [](const auto& a, const auto& b) {
    return longest(a) > longest(b);
  });
  for (const Alternatives& phrase : phrases) {
    for (const Path& path : phrase) {
      words_.insert(words_.end(), path.begin(), path.end());
      for (std::size_t length = 1; length <= path.size(); ++length) {
        const Path begun(path.begin(), path.begin() + length);
        if (std::find(nodes_.begin(), nodes_.end(), begun) == nodes_.end()) nodes_.push_back(begun);
      }
    }
  }
  std::sort(words_.begin(), words_.end());
  words_.erase(std::unique(words_.begin(), words_.end()), words_.end());
  ends_.assign(nodes_.size(), 0);
  goals_.assign(nodes_.size(), 0);
  for (std::size_t i = 0; i < phrases.size(); ++i) {
    for (const Path& path : phrases[i]) add(1u << i, path);
    full_ |= 1u << i;
    weights_.push_back(static_cast<int>(longest(phrases[i])));
  }
  for (const Path& node : nodes_) {
    std::vector<int>& go = go_.emplace_back();
    for (const std::int64_t word : words_) {
      Path tokens = node;
      tokens.push_back(word);
      go.push_back(node_after(tokens));
    }
  }
}

// The node of the longest end of the tokens that begins an alternative.
int Phrases::node_after(const Path& tokens) const {
  for (std::size_t start = 0; start < tokens.size(); ++start) {
    const auto found = std::find(nodes_.begin(), nodes_.end(), end_of(tokens, start));
    if (found != nodes_.end()) return static_cast<int>(found - nodes_.begin());
  }
  return 0;
}

// Marks the nodes at which an alternative ends, and those at which it is begun.
void Phrases::add(std::uint32_t bit, const Path& path) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Path& node = nodes_[i];
    for (std::size_t start = 0; start < node.size(); ++start) {
      const Path end = end_of(node, start);
      if (end == path) ends_[i] |= bit;
      if (end.size() < path.size() && begins(path, end)) goals_[i] |= bit;
    }
  }
}

PhraseState Phrases::after(PhraseState state, std::int64_t token) const {
  const auto word = std::lower_bound(words_.begin(), words_.end(), token);
  if (word == words_.end() || *word != token) return {0, state.met};
  const int node = go_[state.node][word - words_.begin()];
  const std::uint32_t fresh = ends_[node] & ~state.met;
  if (fresh == 0) return {node, state.met};
  return {0, state.met | (fresh & -fresh)};
}

int Phrases::bank(PhraseState state) const {
  int num_tokens = is_begun(state) ? static_cast<int>(nodes_[state.node].size()) : 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (state.met >> i & 1) num_tokens += weights_[i];
  }
  return num_tokens;
}

int Phrases::num_missed(PhraseState state) const { return std::popcount(full_ & ~state.met); }

}  // namespace dragoman
