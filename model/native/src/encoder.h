// The encoder over a batch of sentences laid end to end: no padding, no work on padding.
#pragma once

#include "attention.h"
#include "stack.h"

namespace dragoman {

class Encoder {
 public:
  Encoder(const Network& network, Team& team);

  // Encodes sentences and gives the keys and values of one decoder layer after another to
  // store(layer, sentence, position, keys, values).
  // `ids` holds all sentences one after another, `lengths` their lengths.
  template <class Store>
  void encode(const std::int32_t* ids, const std::int32_t* lengths, int num_sentences,
              Store&& store) {
    run(ids, lengths, num_sentences);
    const int keys = network_.heads.keys();
    for (std::size_t layer = 0; layer < network_.decoder.size(); ++layer) {
      stack_.project(num_tokens_, *network_.decoder[layer].cross_key_value);
      stack_.for_rows(num_tokens_, [&](int token) {
        const float* row = stack_.projected.row(token);
        store(static_cast<int>(layer), sentence_[token], place_[token], row, row + keys);
      });
    }
  }

 private:
  void run(const std::int32_t* ids, const std::int32_t* lengths, int num_sentences);
  void lay_out(const std::int32_t* lengths, int num_sentences);
  void attend(const std::int32_t* lengths, int num_sentences);

  const Network& network_;
  Team& team_;
  Stack stack_;
  int num_tokens_ = 0;
  std::vector<int> sentence_, place_;             // of each token
  std::vector<int> begin_;                        // first token of each sentence
  std::vector<std::size_t> keys_at_, values_at_;  // of each sentence
  Buffer<half> keys_, values_;
  Buffer<float> scratch_;  // of each thread
};

}  // namespace dragoman
