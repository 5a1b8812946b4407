#include "encoder_batch.h"

namespace dragoman {
namespace {

constexpr int kQueries = 4;

}  // namespace

void EncoderBatch::lay_out(const std::int32_t* lengths, int num_sentences) {
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
  const int num_tokens = static_cast<int>(place_.size());
  stack_.reserve(num_tokens);
  keys_.reserve(num_keys);
  values_.reserve(num_values);
  scratch_stride_ = std::size_t(kQueries) * round_up(longest, kLanes);
  scratch_.reserve(num_threads_ * scratch_stride_);
}

void EncoderBatch::run(const Share& share, const std::int32_t* ids, const std::int32_t* lengths,
                       int num_sentences) {
  lay_out(lengths, num_sentences);
  share.for_rows([&](int token) {
    stack_.embed(token, *network_.source_table, ids[token],
                 network_.source_positions.row(place_[token]),
                 network_.encoder_embedding_norm.get());
  });
  for (const EncoderLayer& layer : network_.encoder) {
    stack_.enter(share, *layer.attention_norm);
    stack_.project(share, *layer.query_key_value);
    attend(share, lengths, num_sentences);
    stack_.add_attended(share, *layer.attention_output);
    stack_.leave(share, *layer.attention_norm);
    stack_.enter(share, *layer.feed_forward_norm);
    stack_.add_feed_forward(share, *layer.up, *layer.down);
    stack_.leave(share, *layer.feed_forward_norm);
  }
  if (network_.is_pre_norm) stack_.enter(share, *network_.encoder_norm);
}

void EncoderBatch::attend(const Share& share, const std::int32_t* lengths,
                          int num_sentences) {
  const HeadShape& heads = network_.heads;
  const RelativeBias& bias = network_.encoder_bias;
  share.for_rows([&](int token) {
    const int sentence = sentence_[token];
    const float* keys = stack_.projected.row(token) + heads.keys();
    store_in_sentence(heads, place_[token], keys, keys + heads.keys(),
                      keys_.data() + keys_at_[sentence], values_.data() + values_at_[sentence]);
  });
  share.run(num_sentences * heads.num_heads, [&](int task, int thread) {
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
                         bias.is_empty() ? nullptr : biases,
                         scratch_.data() + thread * scratch_stride_, outputs, nullptr, 0.0f);
    }
  });
  stack_.quantise_context(share);
}

}  // namespace dragoman
