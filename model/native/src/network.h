// The weights of an encoder-decoder Transformer, packed for one processor's products.
//
// What a network is stands in model/nn; this is the same network with int8 matrices.
#pragma once

#include <memory>
#include <vector>

#include "attention.h"
#include "gemm.h"

namespace dragoman {

enum class Activation { kRelu, kGelu, kSilu };
enum class DecoderCell { kSelfAttention, kSsru };

using SharedMatrix = std::shared_ptr<Matrix>;
using SharedNorm = std::shared_ptr<Norm>;

struct EncoderLayer {
  SharedMatrix query_key_value, attention_output, up, down;
  SharedNorm attention_norm, feed_forward_norm;
};

struct DecoderLayer {
  SharedMatrix query_key_value, attention_output;  // of self-attention
  SharedMatrix forget_candidate;                   // of an SSRU: W_f and W, a pair
  SharedMatrix cross_query, cross_key_value, cross_output;
  SharedMatrix up, down;
  SharedNorm cell_norm, cross_norm, feed_forward_norm;
};

// Rows of a table of positions, (num_positions, d_model).
struct Positions {
  Buffer<float> values;
  int num_positions = 0;
};

struct Network {
  int d_model = 0;
  int d_ff = 0;
  HeadShape heads{};
  bool is_pre_norm = false;
  Activation activation = Activation::kRelu;
  DecoderCell decoder_cell = DecoderCell::kSelfAttention;
  float embedding_factor = 1.0f;
  SharedMatrix source_table, target_table, output;
  Positions source_positions, target_positions;
  std::vector<EncoderLayer> encoder;
  std::vector<DecoderLayer> decoder;
  SharedNorm encoder_norm, decoder_norm;  // pre-norm only
  std::vector<std::uint8_t> is_suppressed;  // by target token
};

}  // namespace dragoman
