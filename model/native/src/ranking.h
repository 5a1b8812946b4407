// The best tokens of a row, as they are found.
#pragma once

#include <cstdint>

namespace dragoman {

// A list of tokens by falling logit, the smaller token first among equals, in whatever order they
// come. A place that is empty holds minus infinity.
struct Ranking {
  float* logits;
  std::int32_t* tokens;
  int size;

  void insert(float logit, std::int32_t token) {
    int place = size - 1;
    const auto is_behind = [&](int other) {
      return logits[other] < logit || (logits[other] == logit && tokens[other] > token);
    };
    if (!is_behind(place)) return;
    for (; place > 0 && is_behind(place - 1); --place) {
      logits[place] = logits[place - 1];
      tokens[place] = tokens[place - 1];
    }
    logits[place] = logit;
    tokens[place] = token;
  }
};

}  // namespace dragoman
