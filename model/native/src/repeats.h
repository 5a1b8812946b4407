// Tokens by which a hypothesis would say again what it has said.
//
// The rule, and the same over tensors, is model/decode/repeats.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace dragoman {

// Calls `mark` with each token that would end an n-gram, of so many tokens, that is among `tokens`
// already; with some of them more than once.
template <class Mark>
void mark_repeats(const std::vector<std::int32_t>& tokens, int size, Mark&& mark) {
  const int last = static_cast<int>(tokens.size()) - (size - 1);
  for (int first = 0; first < last; ++first) {
    const auto begin = tokens.begin() + first, end = begin + (size - 1);
    if (std::equal(begin, end, tokens.begin() + last)) mark(*end);
  }
}

}  // namespace dragoman
