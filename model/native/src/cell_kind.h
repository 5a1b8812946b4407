// The decoder cells by name. What they do is cell.h; this much is known without vectors.
#pragma once

namespace dragoman {

enum class DecoderCell { kSelfAttention, kSsru };

struct CellKind {
  DecoderCell cell;
  const char* name;  // in a ModelConfig
  int num_matrices;  // of a layer
};

inline constexpr CellKind kCellKinds[] = {
    {DecoderCell::kSelfAttention, "self-attention", 2},
    {DecoderCell::kSsru, "ssru", 1},
};

}  // namespace dragoman
