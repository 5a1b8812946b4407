#include "gemm.h"

#include <cstring>

namespace dragoman {
namespace {

constexpr std::uint32_t kZeroWeights = 0x80808080u;  // every byte + 128

}  // namespace

Matrix::Matrix(const std::int8_t* quanta, const float* scale, const float* bias, int num_outputs,
               int num_inputs, float padding) {
  resize(num_outputs, num_inputs);
  const std::size_t panel_bytes = std::size_t(num_quads_) * 4 * kPanel;
  for (int output = 0; output < num_panels_ * kPanel; ++output) {
    const bool is_real = output < num_outputs;
    scale_[output] = is_real ? scale[output] : 0.0f;
    bias_[output] = !is_real ? padding : bias == nullptr ? 0.0f : bias[output];
    std::uint8_t* column =
        bytes_.data() + output / kPanel * panel_bytes + std::size_t(output % kPanel) * 4;
    const std::int8_t* row = quanta + std::size_t(output) * num_inputs;
    for (int quad = 0; quad < num_quads_; ++quad) {
      std::uint32_t weights = 0;
      if (is_real) std::memcpy(&weights, row + quad * 4, std::min(4, num_inputs - quad * 4));
      weights ^= kZeroWeights;
      std::memcpy(column + std::size_t(quad) * 4 * kPanel, &weights, sizeof weights);
    }
  }
}

void Matrix::resize(int num_outputs, int num_inputs) {
  num_outputs_ = num_outputs;
  num_inputs_ = num_inputs;
  num_panels_ = (num_outputs + kPanel - 1) / kPanel;
  num_quads_ = (num_inputs + 3) / 4;
  bytes_.reserve(std::size_t(num_quads_) * 4 * kPanel * num_panels_);
  scale_.reserve(std::size_t(num_panels_) * kPanel);
  bias_.reserve(std::size_t(num_panels_) * kPanel);
}

void Matrix::pack_panel(int index, const OutputRows& rows, const std::int32_t* outputs,
                        float padding) {
  std::uint8_t* column = bytes_.data() + std::size_t(index) * num_quads_ * 4 * kPanel;
  const int begin = index * kPanel;
  for (int place = begin; place < begin + kPanel; ++place, column += 4) {
    const bool is_real = place < num_outputs_;
    scale_[place] = is_real ? rows.scale(outputs[place]) : 0.0f;
    bias_[place] = is_real ? rows.bias(outputs[place]) : padding;
    const std::uint8_t* row = is_real ? rows.row(outputs[place]) : nullptr;
    for (int quad = 0; quad < num_quads_; ++quad) {
      std::uint32_t weights = kZeroWeights;
      if (is_real) std::memcpy(&weights, row + quad * 4, sizeof weights);
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

OutputRows::OutputRows(const Matrix& matrix) : matrix_(matrix), num_quads_(matrix.num_quads()) {
  bytes_.reserve(std::size_t(matrix.num_outputs()) * num_quads_ * 4);
  for (int output = 0; output < matrix.num_outputs(); ++output) {
    const std::uint8_t* column =
        matrix.panel(output / kPanel) + std::size_t(output % kPanel) * 4;
    std::uint8_t* row = bytes_.data() + std::size_t(output) * num_quads_ * 4;
    for (int quad = 0; quad < num_quads_; ++quad, column += 4 * kPanel) {
      std::memcpy(row + quad * 4, column, 4);
    }
  }
}

}  // namespace dragoman
