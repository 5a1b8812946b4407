// The simpler simple recurrent unit (SSRU) as the cell of decoder layers: a state of d_model floats
// a row and layer, which every step replaces (Kim et al. 2019, "From Research to Production and
// Back", section 3.2).
//
// f = σ(W_f x + b_f), c = f ⊙ c₋₁ + (1 − f) ⊙ W x; ReLU(c) is added to the stream. Both products
// are one (`kPair` in gemm.h), and all of the above happens where its panels come out.
#pragma once

#include "cell.h"

namespace dragoman {

class Ssru : public Cell {
 public:
  Ssru(const Network& network, const Limits& limits, Stack& stack);

  void step(const StepRow* rows, const Share& share, int layer) override;
  void copy(int from, int to, int length) override;
  void forget(int, int) override {}  // a state is as large at the end as at the beginning

 private:
  enum Matrices { kForgetCandidate };  // W_f and W, a pair

  float* state(int row, int layer) {
    return states_.data() + (std::size_t(row) * num_layers_ + layer) * width_;
  }

  const Network& network_;
  Stack& stack_;
  int num_layers_, width_;  // the width padded to whole pairs of a panel
  LazyArray<float> states_;
};

}  // namespace dragoman
