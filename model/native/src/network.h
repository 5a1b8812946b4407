// The weights of an encoder-decoder Transformer, packed.
//
// What a network is stands in model/nn; this is the same network with int8 matrices.
#pragma once

#include <memory>
#include <vector>

#include "cell_kind.h"
#include "heads.h"
#include "matrix.h"
#include "norm.h"

namespace dragoman {

enum class Activation { kRelu, kGelu, kGeluTanh, kGeluSigmoid, kSilu };

using SharedMatrix = std::shared_ptr<Matrix>;
using SharedNorm = std::shared_ptr<Norm>;

struct EncoderLayer {
  SharedMatrix query_key_value, attention_output, up, down;
  SharedNorm attention_norm, feed_forward_norm;
};

struct DecoderLayer {
  std::vector<SharedMatrix> cell;  // as many as its kind has, in the order of its own names for them
  SharedMatrix cross_query, cross_key_value, cross_output;
  SharedMatrix up, down;
  SharedNorm cell_norm, cross_norm, feed_forward_norm;
};

// What is added to the embeddings of one side, (max_positions, d_model); nothing if positions act
// inside attention.
struct Positions {
  std::shared_ptr<const Buffer<float>> values;  // of both sides, where they have the same
  int d_model = 0;

  const float* row(int position) const {
    return values == nullptr ? nullptr : values->data() + std::size_t(position) * d_model;
  }
};

struct Network {
  int d_model = 0;
  int encoder_d_ff = 0, decoder_d_ff = 0;
  int max_positions = 0;  // of a source or a target
  HeadShape heads{};
  bool is_pre_norm = false;
  Activation activation = Activation::kRelu;
  bool is_gated = false;  // `up` is a pair: what is activated, and what it is multiplied by
  DecoderCell decoder_cell = DecoderCell::kSelfAttention;
  float embedding_factor = 1.0f;
  float output_factor = 1.0f;  // of what enters the output projection
  SharedMatrix source_table, target_table, output;
  Positions source_positions, target_positions;
  RelativeBias encoder_bias, decoder_bias;
  std::vector<EncoderLayer> encoder;
  std::vector<DecoderLayer> decoder;
  SharedNorm encoder_embedding_norm, decoder_embedding_norm;  // null: embeddings stay as they are
  SharedNorm encoder_norm, decoder_norm;                      // pre-norm only
  std::vector<std::uint8_t> is_suppressed;  // by target token
};

}  // namespace dragoman
