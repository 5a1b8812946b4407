#include "encoder.h"

namespace dragoman {
namespace {

constexpr ShareSize kTokensOfBatch{24, 128};

}  // namespace

Encoder::Encoder(const Network& network, Team& team) : network_(network), team_(team) {
  for (int thread = 0; thread < team.size(); ++thread) batches_.emplace_back(network, team.size());
}

void Encoder::lay_out(const std::int32_t* lengths, int num_sentences) {
  sentence_.clear();
  for (int sentence = 0; sentence < num_sentences; ++sentence) {
    sentence_.insert(sentence_.end(), lengths[sentence], sentence);
  }
  cut_into_shares(static_cast<int>(sentence_.size()), team_.size(), kTokensOfBatch,
                  [&](int token) { return sentence_[token] != sentence_[token - 1]; }, cuts_);
}

}  // namespace dragoman
