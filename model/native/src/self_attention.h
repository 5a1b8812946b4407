// Self-attention as the cell of decoder layers: a past of keys and values that grows with every
// step.
//
// Keys and values stay in the row that computed them (a node); a row finds them by its history.
#pragma once

#include "attention.h"
#include "cell.h"

namespace dragoman {

class SelfAttention : public Cell {
 public:
  SelfAttention(const Network& network, const Team& team, const Limits& limits, const History& history,
                Stack& stack);

  void step(const StepRow* rows, const Share& share, int layer) override;
  void copy(int, int, int) override {}  // the history says where nodes are
  void forget(int row, int length) override;

 private:
  enum Matrices { kQueryKeyValue, kOutput };

  half* node(int row, int layer, int position) {
    return past_.data() +
           ((std::size_t(row) * num_layers_ + layer) * max_length_ + position) * node_size_;
  }
  std::size_t scratch_stride() const;
  void attend(const StepRow* rows, const Share& share, int layer);

  const Network& network_;
  const History& history_;
  Stack& stack_;
  int num_layers_, max_length_;
  std::size_t node_size_;
  LazyArray<half> past_;
  Buffer<float> scratch_;       // of each thread: one row's scores for all heads
  Buffer<const half*> nodes_;   // of each thread: where one row's past lies
};

}  // namespace dragoman
