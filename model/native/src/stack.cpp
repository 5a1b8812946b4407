#include "stack.h"

#include <cstring>

namespace dragoman {
namespace {

inline void store_panel(FloatRows& rows, int row, int panel, const __m512* value) {
  float* to = rows.row(row) + panel * kPanel;
  for (int v = 0; v < kVectors; ++v) _mm512_store_ps(to + v * kLanes, value[v]);
}

inline void add_panel(FloatRows& rows, int row, int panel, const __m512* value) {
  float* to = rows.row(row) + panel * kPanel;
  for (int v = 0; v < kVectors; ++v) {
    const __m512 sum = _mm512_add_ps(_mm512_load_ps(to + v * kLanes), value[v]);
    _mm512_store_ps(to + v * kLanes, sum);
  }
}

template <Activation kKind>
inline __m512 activate(__m512 x) {
  const __m512 one = _mm512_set1_ps(1.0f);
  if constexpr (kKind == Activation::kRelu) {
    return _mm512_max_ps(_mm512_setzero_ps(), x);  // NaN stays NaN: the second operand is given
  } else if constexpr (kKind == Activation::kGelu) {
    const __m512 turned = error_function(_mm512_mul_ps(x, _mm512_set1_ps(0.70710678f)));
    return _mm512_mul_ps(_mm512_mul_ps(x, _mm512_set1_ps(0.5f)), _mm512_add_ps(one, turned));
  } else {
    const __m512 decay = exponential(_mm512_sub_ps(_mm512_setzero_ps(), x));
    return _mm512_div_ps(x, _mm512_add_ps(one, decay));
  }
}

template <Activation kKind>
void multiply_activated(Team& team, const Matrix& matrix, const QuantisedRows& rows, int num_rows,
                        FloatRows& to) {
  multiply(team, matrix, rows, num_rows, [&](int row, int panel, __m512* value) {
    for (int v = 0; v < kVectors; ++v) value[v] = activate<kKind>(value[v]);
    store_panel(to, row, panel, value);
  });
}

}  // namespace

void Stack::reserve(int num_rows) {
  const HeadShape& heads = network_.heads;
  stream.reserve(num_rows, network_.d_model);
  projected.reserve(num_rows, 2 * heads.keys() + heads.values());
  context.reserve(num_rows, heads.values());
  input.reserve(num_rows, network_.d_model);
  attended.reserve(num_rows, heads.values());
  if (network_.is_pre_norm) normalised_.reserve(num_rows, network_.d_model);
  inner_.reserve(num_rows, network_.d_ff);
  inner_quanta_.reserve(num_rows, network_.d_ff);
}

void Stack::embed(int index, const Matrix& table, int token, const float* position) {
  float* to = stream.row(index);
  table.look_up(token, network_.embedding_factor, to);
  for (int i = 0; i < network_.d_model; ++i) to[i] += position[i];
  if (!network_.is_pre_norm) input.quantise(index, to, network_.d_model);
}

void Stack::enter(int num_rows, const Norm& norm) {
  if (!network_.is_pre_norm) return;  // `leave` or `embed` has made the input
  for_rows(num_rows, [&](int row) {
    norm.apply(stream.row(row), normalised_.row(row));
    input.quantise(row, normalised_.row(row), network_.d_model);
  });
}

void Stack::leave(int num_rows, const Norm& norm) {
  if (network_.is_pre_norm) return;
  for_rows(num_rows, [&](int row) {
    norm.apply(stream.row(row), stream.row(row));
    input.quantise(row, stream.row(row), network_.d_model);
  });
}

void Stack::add_attended(int num_rows, const Matrix& matrix) {
  multiply(team_, matrix, attended, num_rows, [&](int row, int panel, const __m512* value) {
    add_panel(stream, row, panel, value);
  });
}

void Stack::add_feed_forward(int num_rows, const Matrix& up, const Matrix& down) {
  switch (network_.activation) {
    case Activation::kRelu:
      multiply_activated<Activation::kRelu>(team_, up, input, num_rows, inner_);
      break;
    case Activation::kGelu:
      multiply_activated<Activation::kGelu>(team_, up, input, num_rows, inner_);
      break;
    case Activation::kSilu:
      multiply_activated<Activation::kSilu>(team_, up, input, num_rows, inner_);
      break;
  }
  for_rows(num_rows, [&](int row) {
    inner_quanta_.quantise(row, inner_.row(row), network_.d_ff);
  });
  multiply(team_, down, inner_quanta_, num_rows, [&](int row, int panel, const __m512* value) {
    add_panel(stream, row, panel, value);
  });
}

void Stack::project(int num_rows, const Matrix& matrix) {
  multiply(team_, matrix, input, num_rows, [&](int row, int panel, const __m512* value) {
    store_panel(projected, row, panel, value);
  });
}

void Stack::quantise_context(int num_rows) {
  for_rows(num_rows, [&](int row) {
    attended.quantise(row, context.row(row), network_.heads.values());
  });
}

}  // namespace dragoman
