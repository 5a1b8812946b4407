#include "ssru.h"

namespace dragoman {

Ssru::Ssru(const Network& network, Team& team, const Limits& limits, Stack& stack)
    : network_(network),
      team_(team),
      stack_(stack),
      num_layers_(static_cast<int>(network.decoder.size())),
      width_(round_up(network.d_model, kPair)),
      states_(std::size_t(limits.max_rows) * num_layers_ * width_) {}

void Ssru::step(const StepRow* rows, int num_rows, int index) {
  const DecoderLayer& layer = network_.decoder[index];
  const __m512 zero = _mm512_setzero_ps();
  stack_.enter(num_rows, *layer.cell_norm);
  multiply(team_, *layer.forget_candidate, stack_.input, num_rows,
           [&](int row, int panel, const __m512* value) {
             const StepRow& fed = rows[row];
             float* own = state(fed.row, index) + panel * kPair;
             float* stream = stack_.stream.row(row) + panel * kPair;
             for (int v = 0; v < kPairVectors; ++v, own += kLanes, stream += kLanes) {
               const __m512 kept = sigmoid(value[v]), candidate = value[kPairVectors + v];
               const __m512 last = fed.position == 0 ? zero : _mm512_loadu_ps(own);
               const __m512 next =
                   _mm512_fmadd_ps(kept, _mm512_sub_ps(last, candidate), candidate);
               _mm512_storeu_ps(own, next);
               const __m512 given = _mm512_max_ps(zero, next);  // NaN stays NaN
               _mm512_store_ps(stream, _mm512_add_ps(_mm512_load_ps(stream), given));
             }
           });
  stack_.leave(num_rows, *layer.cell_norm);
}

void Ssru::copy(int from, int to, int) {
  const std::size_t size = std::size_t(num_layers_) * width_ * sizeof(float);
  if (size != 0) std::memcpy(state(to, 0), state(from, 0), size);
}

}  // namespace dragoman
