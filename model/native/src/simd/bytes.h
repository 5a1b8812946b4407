// Rows of activations as the products of most instruction sets read them: bytes, in their order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dragoman {

using Quantum = std::int8_t;
constexpr bool kPairs = false;

inline int quantum(const Quantum* row, int index) { return row[index]; }

}  // namespace dragoman
