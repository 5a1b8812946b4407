// What encoder and decoder layers share: rows of hidden states and the sub-layers without
// attention.
#pragma once

#include "network.h"
#include "rows.h"
#include "share.h"

namespace dragoman {

// The working memory of a stack: rows of the residual stream and what a sub-layer makes of them.
class Stack {
 public:
  Stack(const Network& network, int d_ff) : network_(network), d_ff_(d_ff) {}

  // Before the first share of some rows.
  void reserve(int num_rows);

  // Row `index` of the residual stream: an embedding and a position, normalised; `position` and
  // `norm` may be null.
  void embed(int index, const Matrix& table, int token, const float* position, const Norm* norm);

  // Before a sub-layer: the rows it reads, normalised first in a pre-norm network.
  void enter(const Share& share, const Norm& norm);
  // After a sub-layer has added itself to the stream: a post-norm network normalises now.
  void leave(const Share& share, const Norm& norm);

  // `attended` times a matrix, added to the stream.
  void add_attended(const Share& share, const Matrix& matrix);
  // The feed-forward sub-layer from `input`, added to the stream.
  void add_feed_forward(const Share& share, const Matrix& up, const Matrix& down);

  // Multiplies `input` by a number: a row's scale has it all.
  void scale_input(const Share& share, float factor);

  // `input` times a matrix, into `projected`.
  void project(const Share& share, const Matrix& matrix);
  // `context` as int8, into `attended`.
  void quantise_context(const Share& share);

  FloatRows stream;       // (rows, D)
  FloatRows projected;    // queries, keys and values of a row, one after another
  FloatRows context;      // (rows, H · value width)
  QuantisedRows input;    // what a sub-layer reads
  QuantisedRows attended;

 private:
  const Network& network_;
  int d_ff_;
  FloatRows normalised_;
  FloatRows inner_;
  QuantisedRows inner_quanta_;
};

}  // namespace dragoman
