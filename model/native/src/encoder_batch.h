// A batch of sentences on its way through the encoder, and the memory it works in.
//
// Tokens are rows, numbered from 0 in each batch.
#pragma once

#include "attention.h"
#include "stack.h"

namespace dragoman {

class EncoderBatch {
 public:
  EncoderBatch(const Network& network, int num_threads)
      : network_(network), num_threads_(num_threads), stack_(network, network.encoder_d_ff) {}

  // Takes sentences through all layers. `ids` holds them one after another, `share` has as many rows.
  void run(const Share& share, const std::int32_t* ids, const std::int32_t* lengths,
           int num_sentences);

  // Gives the keys and values of a decoder layer to store(sentence, position, keys, values).
  template <class Store>
  void project_for_decoder(const Share& share, int layer, Store&& store) {
    stack_.project(share, *network_.decoder[layer].cross_key_value);
    share.for_rows([&](int token) {
      const float* row = stack_.projected.row(token);
      store(sentence_[token], place_[token], row, row + network_.heads.keys());
    });
  }

 private:
  void lay_out(const std::int32_t* lengths, int num_sentences);
  void attend(const Share& share, const std::int32_t* lengths, int num_sentences);

  const Network& network_;
  int num_threads_;
  Stack stack_;
  std::vector<int> sentence_, place_;             // of each token
  std::vector<int> begin_;                        // first token of each sentence
  std::vector<std::size_t> keys_at_, values_at_;  // of each sentence
  Buffer<half> keys_, values_;
  std::size_t scratch_stride_ = 0;
  Buffer<float> scratch_;  // of each thread
};

}  // namespace dragoman
