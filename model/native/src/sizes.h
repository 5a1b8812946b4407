// Numbers of a vector, and the types of numbers that all instruction sets store alike.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dragoman {

// Floats of a vector, whatever registers it is made of: sums across a row have so many parts.
constexpr int kLanes = 16;

// IEEE half precision, as the caches store it.
using half = std::uint16_t;

constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

}  // namespace dragoman
