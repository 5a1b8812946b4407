// int8 products: rows of activations times a matrix that was packed once.
//
// The product instruction (vpdpbusd) multiplies unsigned by signed bytes, four at a time. The
// weights are the unsigned ones, stored as w + 128; Σ (w + 128) q = Σ w q + 128 Σ q, and the
// last term belongs to the row alone (`QuantisedRows::excess`). Sums are exact integers, so the
// order of rows, panels and threads cannot change a result.
//
// A matrix lies in panels of 64 outputs. Within a panel four inputs of all 64 outputs stand
// together (256 bytes), so a kernel reads it from end to end: six rows by 64 outputs are 24
// accumulators, four registers of weights and one of activations.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "rows.h"
#include "team.h"
#include "weight_memory.h"

namespace dragoman {

constexpr int kPanel = 64;
constexpr int kVectors = kPanel / kLanes;

// Two matrices whose outputs are wanted together, number by number, are packed as one: every panel
// has 32 outputs of the first, then the same 32 of the second.
constexpr int kPair = kPanel / 2;
constexpr int kPairVectors = kVectors / 2;

// Of packed matrices, and what reads them: another number or name for whatever lies elsewhere.
constexpr int kLayout = 1;
constexpr const char* kInstructionSet = "avx512-vnni";

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

// One product and sum. Written out, because compilers copy the accumulator before the intrinsic.
inline void dot_four(__m512i& sum, __m512i weights, __m512i activations) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(weights), "v"(activations));
}

// The integer sums of R rows with one panel, row by row. Indices are spelled out at compile time
// (`V` counts vectors, `I` accumulators): only so do compilers keep all sums in registers.
template <int R, int... V, int... I>
inline void dot(const std::int8_t* rows, std::ptrdiff_t stride, const std::uint8_t* panel,
                int num_quads, __m512i* to, std::integer_sequence<int, V...>,
                std::integer_sequence<int, I...>) {
  __m512i sum[R * kVectors] = {((void)I, _mm512_setzero_si512())...};
  for (int quad = 0; quad < num_quads; ++quad) {
    const __m512i weights[kVectors] = {_mm512_load_si512(panel + V * 64)...};
    const auto four = [&](int row) {
      std::int32_t bytes;
      __builtin_memcpy(&bytes, rows + row * stride, sizeof bytes);
      return _mm512_set1_epi32(bytes);
    };
    __m512i activations = _mm512_setzero_si512();
    ((activations = I % kVectors == 0 ? four(I / kVectors) : activations,
      dot_four(sum[I], weights[I % kVectors], activations)),
     ...);
    panel += 4 * kPanel;
    rows += 4;
  }
  ((to[I] = sum[I]), ...);
}

// The products of R rows from `begin` on with one panel, still as integers.
template <int R>
struct Block {
  static constexpr int kRows = R;

  Block(const Matrix& matrix, const QuantisedRows& rows, int begin, int panel)
      : matrix(matrix), rows(rows), begin(begin), panel(panel) {}

  const Matrix& matrix;
  const QuantisedRows& rows;
  int begin, panel;
  __m512i sum[R * kVectors];

  int num_outputs() const { return matrix.num_outputs(); }

  // The 64 outputs of row `begin + r`.
  void outputs(int r, __m512* value) const {
    const __m512i excess = _mm512_set1_epi32(rows.excess[begin + r]);
    const __m512 scale = _mm512_set1_ps(rows.scale[begin + r]);
    for (int v = 0; v < kVectors; ++v) {
      const __m512i exact = _mm512_sub_epi32(sum[r * kVectors + v], excess);
      const __m512 factor = _mm512_mul_ps(scale, _mm512_load_ps(matrix.scale(panel) + v * kLanes));
      value[v] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), factor,
                                 _mm512_load_ps(matrix.bias(panel) + v * kLanes));
    }
  }
};

template <int R, class Sink>
inline void multiply_block(const Matrix& matrix, int panel, const QuantisedRows& rows, int begin,
                           Sink& sink) {
  Block<R> block(matrix, rows, begin, panel);
  dot<R>(rows.row(begin), rows.stride, matrix.panel(panel), matrix.num_quads(), block.sum,
         std::make_integer_sequence<int, kVectors>(),
         std::make_integer_sequence<int, R * kVectors>());
  sink(block);
}

template <class Sink>
inline void multiply_panel(const Matrix& matrix, int panel, const QuantisedRows& rows, int begin,
                           int end, Sink& sink) {
  for (; begin + 6 <= end; begin += 6) multiply_block<6>(matrix, panel, rows, begin, sink);
  switch (end - begin) {
    case 5: multiply_block<5>(matrix, panel, rows, begin, sink); break;
    case 4: multiply_block<4>(matrix, panel, rows, begin, sink); break;
    case 3: multiply_block<3>(matrix, panel, rows, begin, sink); break;
    case 2: multiply_block<2>(matrix, panel, rows, begin, sink); break;
    case 1: multiply_block<1>(matrix, panel, rows, begin, sink); break;
    default: break;
  }
}

// Rows times matrix, panel by panel over the team: sink(block, thread) gets what several rows have
// with one panel, on any thread.
template <class Sink>
void multiply_in_blocks(Team& team, const Matrix& matrix, const QuantisedRows& rows, int num_rows,
                        Sink&& sink) {
  constexpr int kChunk = 48;  // with a panel it stays in the second-level cache
  const int num_chunks = (num_rows + kChunk - 1) / kChunk;
  team.run(matrix.num_panels() * num_chunks, [&](int task, int thread) {
    const int begin = task % num_chunks * kChunk;
    const auto on_thread = [&](const auto& block) { sink(block, thread); };
    multiply_panel(matrix, task / num_chunks, rows, begin, std::min(begin + kChunk, num_rows),
                   on_thread);
  });
}

// The same, row by row: sink(row, panel, value[4]) gets the 64 outputs of a row.
template <class Sink>
void multiply(Team& team, const Matrix& matrix, const QuantisedRows& rows, int num_rows,
              Sink sink) {
  multiply_in_blocks(team, matrix, rows, num_rows, [&](const auto& block, int) {
    for (int r = 0; r < block.kRows; ++r) {
      __m512 value[kVectors];
      block.outputs(r, value);
      sink(block.begin + r, block.panel, value);
    }
  });
}

}  // namespace dragoman
