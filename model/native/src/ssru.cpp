#include "ssru.h"

#include "gemm.h"

namespace dragoman {

Ssru::Ssru(const Network& network, const Limits& limits, Stack& stack)
    : network_(network),
      stack_(stack),
      num_layers_(static_cast<int>(network.decoder.size())),
      width_(round_up(network.d_model, kPair)),
      states_(std::size_t(limits.max_rows) * num_layers_ * width_) {}

void Ssru::step(const StepRow* rows, const Share& share, int index) {
  const DecoderLayer& layer = network_.decoder[index];
  const Floats zero = zeros();
  stack_.enter(share, *layer.cell_norm);
  multiply(share, *layer.cell[kForgetCandidate], stack_.input,
           [&](int row, int panel, const Floats* value) {
             const StepRow& fed = rows[row];
             float* own = state(fed.row, index) + panel * kPair;
             float* stream = stack_.stream.row(row) + panel * kPair;
             for (int v = 0; v < kPairVectors; ++v, own += kLanes, stream += kLanes) {
               const Floats kept = sigmoid(value[v]), candidate = value[kPairVectors + v];
               const Floats last = fed.position == 0 ? zero : load(own);
               const Floats next =
                   mul_add(kept, sub(last, candidate), candidate);
               store(own, next);
               const Floats given = larger(zero, next);  // NaN stays NaN
               store(stream, add(load(stream), given));
             }
           });
  stack_.leave(share, *layer.cell_norm);
}

void Ssru::copy(int from, int to, int) {
  const std::size_t size = std::size_t(num_layers_) * width_ * sizeof(float);
  if (size != 0) std::memcpy(state(to, 0), state(from, 0), size);
}

}  // namespace dragoman
