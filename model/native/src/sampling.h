// Drawing of a row's next token from its likeliest ones, instead of searching on by beams.
//
// The arithmetic is that of model/decode/sampling.py: noise is a function of the sentence's seed, the
// row, the step and the token alone, so what runs beside a sentence changes nothing.
#pragma once

#include <cstdint>

namespace dragoman {

// How a sentence is drawn; a temperature of 0: it is searched by beams.
struct Sampling {
  double temperature = 0.0;
  int top_k = 1;
  double top_p = 1.0;
  std::uint64_t seed = 0;
};

// Where a row is: which of its sentence's, and how many tokens it has chosen.
struct Draw {
  int beam, step;
};

// Which of `num` tokens, the likeliest first, is drawn.
int sample(const Sampling& sampling, Draw draw, const float* log_probs, const std::int64_t* tokens,
           int num);

}  // namespace dragoman
