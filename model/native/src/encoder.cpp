#include "encoder.h"

namespace dragoman {
namespace {

constexpr int kQueries = 4;

}  // namespace

Encoder::Encoder(const Network& network, Team& team)
    : network_(network), team_(team), stack_(network, team, network.encoder_d_ff) {}

void Encoder::lay_out(const std::int32_t* lengths, int num_sentences) {
  sentence_.clear();
  place_.clear();
  begin_.clear();
  keys_at_.clear();
  values_at_.clear();
  std::size_t num_keys = 0, num_values = 0;
  int longest = 0;
  for (int sentence = 0; sentence < num_sentences; ++sentence) {
    const int length = lengths[sentence];
    begin_.push_back(static_cast<int>(place_.size()));
    keys_at_.push_back(num_keys);
    values_at_.push_back(num_values);
    num_keys += sentence_keys_size(network_.heads, length);
    num_values += sentence_values_size(network_.heads, length);
    longest = std::max(longest, length);
    for (int position = 0; position < length; ++position) {
      sentence_.push_back(sentence);
      place_.push_back(position);
    }
  }
  num_tokens_ = static_cast<int>(place_.size());
  stack_.reserve(num_tokens_);
  keys_.reserve(num_keys);
  values_.reserve(num_values);
  scratch_.reserve(std::size_t(team_.size()) * kQueries * round_up(longest, kLanes));
}

void Encoder::run(const std::int32_t* ids, const std::int32_t* lengths, int num_sentences) {
  lay_out(lengths, num_sentences);
  stack_.for_rows(num_tokens_, [&](int token) {
    stack_.embed(token, *network_.source_table, ids[token],
                 network_.source_positions.row(place_[token]),
                 network_.encoder_embedding_norm.get());
  });
  for (const EncoderLayer& layer : network_.encoder) {
    stack_.enter(num_tokens_, *layer.attention_norm);
    stack_.project(num_tokens_, *layer.query_key_value);
    attend(lengths, num_sentences);
    stack_.add_attended(num_tokens_, *layer.attention_output);
    stack_.leave(num_tokens_, *layer.attention_norm);
    stack_.enter(num_tokens_, *layer.feed_forward_norm);
    stack_.add_feed_forward(num_tokens_, *layer.up, *layer.down);
    stack_.leave(num_tokens_, *layer.feed_forward_norm);
  }
  if (network_.is_pre_norm) stack_.enter(num_tokens_, *network_.encoder_norm);
}

void Encoder::attend(const std::int32_t* lengths, int num_sentences) {
  const HeadShape& heads = network_.heads;
  const RelativeBias& bias = network_.encoder_bias;
  stack_.for_rows(num_tokens_, [&](int token) {
    const int sentence = sentence_[token];
    const float* keys = stack_.projected.row(token) + heads.keys();
    store_in_sentence(heads, place_[token], keys, keys + heads.keys(),
                      keys_.data() + keys_at_[sentence], values_.data() + values_at_[sentence]);
  });
  const int longest = *std::max_element(lengths, lengths + num_sentences);
  const std::size_t stride = std::size_t(kQueries) * round_up(longest, kLanes);
  team_.run(num_sentences * heads.num_heads, [&](int task, int thread) {
    const int sentence = task / heads.num_heads, head = task % heads.num_heads;
    const int begin = begin_[sentence], end = begin + lengths[sentence];
    const Sentence whole{keys_.data() + keys_at_[sentence], values_.data() + values_at_[sentence],
                        lengths[sentence]};
    for (int first = begin; first < end; first += kQueries) {
      const int num_queries = std::min(kQueries, end - first);
      const float* queries[kQueries];
      const float* biases[kQueries];
      float* outputs[kQueries];
      for (int q = 0; q < num_queries; ++q) {
        queries[q] = stack_.projected.row(first + q);
        outputs[q] = stack_.context.row(first + q);
        if (!bias.is_empty()) biases[q] = bias.of(head, first + q - begin);
      }
      attend_to_sentence(heads, head, whole, queries, num_queries,
                         bias.is_empty() ? nullptr : biases, scratch_.data() + thread * stride,
                         outputs, nullptr, 0.0f);
    }
  });
  stack_.quantise_context(num_tokens_);
}

}  // namespace dragoman
