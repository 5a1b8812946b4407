// The encoder, sentences laid end to end: no padding, no work on padding.
//
// Many sentences go through it in batches, each from its tokens to the decoder's keys and values before
// the next: what a batch works with stays in the caches of its thread.
#pragma once

#include "encoder_batch.h"

namespace dragoman {

class Encoder {
 public:
  Encoder(const Network& network, Team& team);

  // Encodes sentences and gives the keys and values of one decoder layer after another to
  // store(layer, sentence, position, keys, values), on any thread.
  // `ids` holds all sentences one after another, `lengths` their lengths.
  template <class Store>
  void encode(const std::int32_t* ids, const std::int32_t* lengths, int num_sentences,
              Store&& store) {
    if (num_sentences == 0) return;
    lay_out(lengths, num_sentences);
    for_shares(team_, cuts_, [&](const Share& share, int) {
      const int first = sentence_[share.begin()];
      const int num = sentence_[share.end() - 1] + 1 - first;
      EncoderBatch& batch = batches_[share.thread()];
      const Share tokens = share.from_zero();
      batch.run(tokens, ids + share.begin(), lengths + first, num);
      for (std::size_t layer = 0; layer < network_.decoder.size(); ++layer) {
        batch.project_for_decoder(tokens, static_cast<int>(layer), [&](int sentence, auto... rest) {
          store(static_cast<int>(layer), first + sentence, rest...);
        });
      }
    });
  }

 private:
  void lay_out(const std::int32_t* lengths, int num_sentences);

  const Network& network_;
  Team& team_;
  std::vector<EncoderBatch> batches_;  // of each thread
  std::vector<int> sentence_;          // of each token
  std::vector<int> cuts_;              // of tokens into shares, between sentences
};

}  // namespace dragoman
