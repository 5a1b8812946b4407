#include "matrix.h"

#include <cstring>

namespace dragoman {
namespace {

std::size_t bytes_of_panel(int num_quads) { return std::size_t(num_quads) * 4 * kPanel; }

}  // namespace

Matrix::Matrix(std::shared_ptr<WeightMemory> memory, const std::int8_t* quanta, const float* scale,
               const float* bias, int num_outputs, int num_inputs, float padding)
    : Matrix(num_outputs, num_inputs) {
  std::byte* place = memory->take(num_bytes());
  lie_at(std::move(memory), place);
  pack(quanta, scale, bias, padding, place);
}

Matrix::Matrix(std::shared_ptr<WeightMemory> memory, std::size_t offset, int num_outputs,
               int num_inputs)
    : Matrix(num_outputs, num_inputs) {
  const std::byte* place = memory->at(offset, num_bytes());
  lie_at(std::move(memory), place);
}

Matrix::Matrix(int num_outputs, int num_inputs)
    : num_outputs_(num_outputs),
      num_inputs_(num_inputs),
      num_panels_((num_outputs + kPanel - 1) / kPanel),
      num_quads_((num_inputs + 3) / 4) {}

std::size_t Matrix::num_bytes() const {
  return std::size_t(num_panels_) * (bytes_of_panel(num_quads_) + 2 * kPanel * sizeof(float));
}

void Matrix::lie_at(std::shared_ptr<WeightMemory> memory, const std::byte* place) {
  memory_ = std::move(memory);
  bytes_ = reinterpret_cast<const std::uint8_t*>(place);
  scale_ = reinterpret_cast<const float*>(place + num_panels_ * bytes_of_panel(num_quads_));
  bias_ = scale_ + std::size_t(num_panels_) * kPanel;
}

void Matrix::pack(const std::int8_t* quanta, const float* scale, const float* bias, float padding,
                  std::byte* place) const {
  const std::size_t panel_bytes = bytes_of_panel(num_quads_);
  float* scales = reinterpret_cast<float*>(place + num_panels_ * panel_bytes);
  float* biases = scales + std::size_t(num_panels_) * kPanel;
  for (int output = 0; output < num_panels_ * kPanel; ++output) {
    const bool is_real = output < num_outputs_;
    scales[output] = is_real ? scale[output] : 0.0f;
    biases[output] = !is_real ? padding : bias == nullptr ? 0.0f : bias[output];
    std::byte* column = place + output / kPanel * panel_bytes + std::size_t(output % kPanel) * 4;
    const std::int8_t* row = quanta + std::size_t(output) * num_inputs_;
    for (int quad = 0; quad < num_quads_; ++quad) {
      std::uint32_t weights = 0;
      if (is_real) std::memcpy(&weights, row + quad * 4, std::min(4, num_inputs_ - quad * 4));
      weights ^= 0x80808080u;  // every byte + 128
      std::memcpy(column + std::size_t(quad) * 4 * kPanel, &weights, sizeof weights);
    }
  }
}

void Matrix::look_up(int output, float factor, float* to) const {
  const std::uint8_t* column = panel(output / kPanel) + std::size_t(output % kPanel) * 4;
  const float scale = scale_[output];
  for (int first = 0; first < num_inputs_; first += 4, column += 4 * kPanel) {
    const int num = std::min(4, num_inputs_ - first);
    for (int i = 0; i < num; ++i) {
      to[first + i] = static_cast<float>(column[i] - 128) * scale * factor;
    }
  }
}

}  // namespace dragoman
