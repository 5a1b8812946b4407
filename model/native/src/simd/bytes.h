// Rows of activations as products read them: bytes, in their order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dragoman {

using Quantum = std::int8_t;

// Where products of two bytes are summed in 16 bits (`kSaturates`): sets apart what of `kSumBytes`
// activations could be too much, moving it from `row` to `rest`. Bit by bit, which fours have a rest;
// elsewhere none has.
inline unsigned set_apart(Quantum* row, Quantum* rest);

}  // namespace dragoman
