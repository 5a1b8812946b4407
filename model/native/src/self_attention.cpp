#include "self_attention.h"

namespace dragoman {
namespace {

// Positions of a past whose memory a finished row keeps for the next one.
constexpr int kKept = 64;

}  // namespace

SelfAttention::SelfAttention(const Network& network, const Team& team, const Limits& limits,
                             const History& history, Stack& stack)
    : network_(network),
      history_(history),
      stack_(stack),
      num_layers_(static_cast<int>(network.decoder.size())),
      max_length_(limits.max_target_length),
      node_size_(network.heads.keys() + network.heads.values()),
      past_(std::size_t(limits.max_rows) * num_layers_ * max_length_ * node_size_) {
  nodes_.reserve(std::size_t(team.size()) * max_length_);
  scratch_.reserve(team.size() * scratch_stride());
}

std::size_t SelfAttention::scratch_stride() const {
  return std::size_t(round_up(max_length_, kLanes)) * network_.heads.num_heads;
}

void SelfAttention::step(const StepRow* rows, const Share& share, int index) {
  const DecoderLayer& layer = network_.decoder[index];
  stack_.enter(share, *layer.cell_norm);
  stack_.project(share, *layer.cell[kQueryKeyValue]);
  attend(rows, share, index);
  stack_.add_attended(share, *layer.cell[kOutput]);
  stack_.leave(share, *layer.cell_norm);
}

void SelfAttention::attend(const StepRow* rows, const Share& share, int layer) {
  const HeadShape& heads = network_.heads;
  share.run(share.num_rows(), [&](int task, int thread) {
    const int row = share.begin() + task;
    const StepRow& fed = rows[row];
    const float* query = stack_.projected.row(row);
    half* own = node(fed.row, layer, fed.position);
    for (int i = 0; i < static_cast<int>(node_size_); i += kLanes) {
      store_half(own + i, load(query + heads.keys() + i));
    }
    const int length = fed.position + 1;
    const half** nodes = nodes_.data() + std::size_t(thread) * max_length_;
    const std::int32_t* ancestors = history_.ancestors(fed.row);
    for (int t = 0; t < length; ++t) nodes[t] = node(ancestors[t], layer, t);
    attend_to_past(heads, network_.decoder_bias, nodes, length, query,
                   scratch_.data() + thread * scratch_stride(), stack_.context.row(row));
    stack_.attended.quantise(row, stack_.context.row(row), heads.values());
  });
}

void SelfAttention::forget(int row, int length) {
  if (length <= kKept) return;
  for (int layer = 0; layer < num_layers_; ++layer) {
    const std::size_t begin = node(row, layer, kKept) - past_.data();
    past_.forget(begin, begin + std::size_t(length - kKept) * node_size_);
  }
}

}  // namespace dragoman
