// int8 matrices, packed once for the products of every instruction set.
//
// Owns where weights lie, and no product (gemm.h, listed.h). Weights are unsigned bytes, stored as
// w + 128: what multiplies unsigned by signed bytes reads them as they are.
//
// A matrix lies in panels of 64 outputs. Within a panel four inputs of all 64 outputs stand
// together (256 bytes), so a kernel reads it from end to end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "memory.h"
#include "sizes.h"
#include "weight_memory.h"

namespace dragoman {

constexpr int kPanel = 64;

// Two matrices whose outputs are wanted together, number by number, are packed as one: every panel
// has 32 outputs of the first, then the same 32 of the second.
constexpr int kPair = kPanel / 2;

// Of packed matrices: another one for whatever lies elsewhere.
constexpr const char* kLayout = "panels-1";

class Matrix {
 public:
  // Packs `quanta` (num_outputs, num_inputs), row-major, with one scale an output, into `memory`:
  // panels, then scales, then biases. A null bias is zero. Padded outputs get the bias `padding`.
  Matrix(std::shared_ptr<WeightMemory> memory, const std::int8_t* quanta, const float* scale,
         const float* bias, int num_outputs, int num_inputs, float padding = 0.0f);
  // What another matrix of these sizes has packed, at an offset of `memory`.
  Matrix(std::shared_ptr<WeightMemory> memory, std::size_t offset, int num_outputs, int num_inputs);

  int num_outputs() const { return num_outputs_; }
  int num_inputs() const { return num_inputs_; }
  int num_panels() const { return num_panels_; }
  int num_quads() const { return num_quads_; }
  const std::uint8_t* panel(int index) const {
    return bytes_ + std::size_t(index) * num_quads_ * 4 * kPanel;
  }
  const float* scale(int panel) const { return scale_ + panel * kPanel; }
  const float* bias(int panel) const { return bias_ + panel * kPanel; }

  // The weights of one output as floats, times `factor`: how a tied table is looked up.
  void look_up(int output, float factor, float* to) const;

  // Where in its memory it lies.
  std::size_t offset() const {
    return memory_->offset_of(reinterpret_cast<const std::byte*>(bytes_));
  }

 private:
  Matrix(int num_outputs, int num_inputs);
  std::size_t num_bytes() const;
  void lie_at(std::shared_ptr<WeightMemory> memory, const std::byte* place);
  void pack(const std::int8_t* quanta, const float* scale, const float* bias, float padding,
            std::byte* place) const;

  int num_outputs_, num_inputs_, num_panels_, num_quads_;
  std::shared_ptr<WeightMemory> memory_;
  const std::uint8_t* bytes_ = nullptr;
  const float* scale_ = nullptr;
  const float* bias_ = nullptr;
};

}  // namespace dragoman
