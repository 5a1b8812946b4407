#include "stack.h"

#include <cstring>

#include "gemm.h"

namespace dragoman {
namespace {

inline void store_panel(FloatRows& rows, int row, int panel, const Floats* value) {
  float* to = rows.row(row) + panel * kPanel;
  for (int v = 0; v < kVectors; ++v) store(to + v * kLanes, value[v]);
}

inline void add_panel(FloatRows& rows, int row, int panel, const Floats* value) {
  float* to = rows.row(row) + panel * kPanel;
  for (int v = 0; v < kVectors; ++v) {
    const Floats sum = add(load(to + v * kLanes), value[v]);
    store(to + v * kLanes, sum);
  }
}

template <Activation kKind>
inline Floats activate(Floats x) {
  const Floats one = all(1.0f);
  if constexpr (kKind == Activation::kRelu) {
    return larger(zeros(), x);  // NaN stays NaN: the second operand is given
  } else if constexpr (kKind == Activation::kGelu) {
    const Floats turned = error_function(mul(x, all(0.70710678f)));
    return mul(mul(x, all(0.5f)), add(one, turned));
  } else {  // x σ(g(x)) in three forms
    Floats gate = x;
    if constexpr (kKind == Activation::kGeluTanh) {  // (1 + tanh(y)) / 2 is σ(2 y)
      const Floats cubic = mul(mul(x, x), all(0.044715f));
      gate = mul(mul_add(cubic, x, x), all(1.5957691f));
    } else if constexpr (kKind == Activation::kGeluSigmoid) {
      gate = mul(x, all(1.702f));
    }
    const Floats decay = exponential(negated(gate));
    return div(x, add(one, decay));
  }
}

template <Activation kKind, bool kIsGated>
void multiply_activated(const Share& share, const Matrix& matrix, const QuantisedRows& rows,
                        FloatRows& to) {
  multiply(share, matrix, rows, [&](int row, int panel, Floats* value) {
    if constexpr (kIsGated) {
      float* inner = to.row(row) + panel * kPair;
      for (int v = 0; v < kPairVectors; ++v) {
        const Floats gated = mul(activate<kKind>(value[v]), value[kPairVectors + v]);
        store(inner + v * kLanes, gated);
      }
    } else {
      for (int v = 0; v < kVectors; ++v) value[v] = activate<kKind>(value[v]);
      store_panel(to, row, panel, value);
    }
  });
}

template <bool kIsGated>
void multiply_and_activate(Activation kind, const Share& share, const Matrix& matrix,
                           const QuantisedRows& rows, FloatRows& to) {
  switch (kind) {
    case Activation::kRelu:
      return multiply_activated<Activation::kRelu, kIsGated>(share, matrix, rows, to);
    case Activation::kGelu:
      return multiply_activated<Activation::kGelu, kIsGated>(share, matrix, rows, to);
    case Activation::kGeluTanh:
      return multiply_activated<Activation::kGeluTanh, kIsGated>(share, matrix, rows, to);
    case Activation::kGeluSigmoid:
      return multiply_activated<Activation::kGeluSigmoid, kIsGated>(share, matrix, rows, to);
    case Activation::kSilu:
      return multiply_activated<Activation::kSilu, kIsGated>(share, matrix, rows, to);
  }
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
  inner_.reserve(num_rows, d_ff_);
  inner_quanta_.reserve(num_rows, d_ff_);
}

void Stack::embed(int index, const Matrix& table, int token, const float* position,
                  const Norm* norm) {
  float* to = stream.row(index);
  table.look_up(token, network_.embedding_factor, to);
  if (position != nullptr) {
    for (int i = 0; i < network_.d_model; ++i) to[i] += position[i];
  }
  if (norm != nullptr) normalise(*norm, to, to);
  if (!network_.is_pre_norm) input.quantise(index, to, network_.d_model);
}

void Stack::enter(const Share& share, const Norm& norm) {
  if (!network_.is_pre_norm) return;  // `leave` or `embed` has made the input
  share.for_rows([&](int row) {
    normalise(norm, stream.row(row), normalised_.row(row));
    input.quantise(row, normalised_.row(row), network_.d_model);
  });
}

void Stack::leave(const Share& share, const Norm& norm) {
  if (network_.is_pre_norm) return;
  share.for_rows([&](int row) {
    normalise(norm, stream.row(row), stream.row(row));
    input.quantise(row, stream.row(row), network_.d_model);
  });
}

void Stack::add_attended(const Share& share, const Matrix& matrix) {
  multiply(share, matrix, attended, [&](int row, int panel, const Floats* value) {
    add_panel(stream, row, panel, value);
  });
}

void Stack::add_feed_forward(const Share& share, const Matrix& up, const Matrix& down) {
  const auto make_inner =
      network_.is_gated ? multiply_and_activate<true> : multiply_and_activate<false>;
  make_inner(network_.activation, share, up, input, inner_);
  share.for_rows([&](int row) {
    inner_quanta_.quantise(row, inner_.row(row), d_ff_);
  });
  multiply(share, down, inner_quanta_, [&](int row, int panel, const Floats* value) {
    add_panel(stream, row, panel, value);
  });
}

void Stack::scale_input(const Share& share, float factor) {
  for (int row = share.begin(); row < share.end(); ++row) input.scale[row] *= factor;
}

void Stack::project(const Share& share, const Matrix& matrix) {
  multiply(share, matrix, input, [&](int row, int panel, const Floats* value) {
    store_panel(projected, row, panel, value);
  });
}

void Stack::quantise_context(const Share& share) {
  share.for_rows([&](int row) {
    attended.quantise(row, context.row(row), network_.heads.values());
  });
}

}  // namespace dragoman
