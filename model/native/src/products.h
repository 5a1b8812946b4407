// Instructions that multiply matrices, where an instruction set has some beside products of four
// bytes: tiles of AMX, pairs of rows of NEON. Chosen here; what they sum is what `dot_four` sums.
#pragma once

#include <cstddef>

#include "simd.h"

#if defined(__AMX_INT8__)
#include "simd/amx.h"
#else
namespace dragoman {

constexpr bool kHasTiles = false;
constexpr int kTileRows = 1, kLeastTileRows = 1;
void sums_in_tiles(const Quantum* rows, std::ptrdiff_t stride, int num_rows,
                   const std::uint8_t* panel, int num_quads, std::int32_t* to);

}  // namespace dragoman
#endif

#if defined(__ARM_FEATURE_MATMUL_INT8)
#include "simd/i8mm.h"
#else
namespace dragoman {

constexpr bool kHasRowPairs = false;
template <int R, int V, bool kFetches>
void dot_row_pairs(const Quantum* rows, std::ptrdiff_t stride, const std::uint8_t* panel,
                   int num_quads, std::int32_t* to);

}  // namespace dragoman
#endif
