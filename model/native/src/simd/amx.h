// Tiles of AMX: sums of up to 32 rows with a panel of 64 outputs.
//
// A tile is a register of up to 16 rows of 64 bytes. One of activations has 64 inputs of 16 rows, as
// rows lie; one of weights 64 inputs of 16 outputs, four inputs of all outputs a row, which is how
// panels lie: both are loaded as they are. Their product adds 16 × 16 sums (`tdpbsud`, signed by
// unsigned bytes), exactly those of AVX-512 VNNI, which has everything else of this level.
//
// Four tiles of sums are worked on together, as a product takes 52 cycles and one may begin every 16:
// up to 16 rows with all outputs, or two tiles of rows with half of them, which reads weights once for
// 32 rows. Instructions are written out, because compilers want the numbers of tiles as literals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "avx512.h"

namespace dragoman {

constexpr bool kHasTiles = true;
constexpr int kTileRows = 32;  // rows worked on together
// With fewer rows a panel takes no less time in tiles than by products of four bytes: 16 cycles for
// 64 inputs of 16 outputs, whose 16 vectors take 8 for each row.
constexpr int kLeastTileRows = 3;

constexpr int kRowsOfTile = 16, kOutputsOfTile = 16;
constexpr int kQuadsOfTile = 16;      // four inputs each
constexpr int kTileBytes = 64;        // of a row of a tile
constexpr int kQuadBytes = 4 * 64;    // of a panel's outputs
constexpr int kSumStride = 64;        // from the sums of a row to those of the next one
constexpr int kSumTiles = 4, kFirstRowTile = 4, kFirstWeightTile = 6;  // of eight

// The shapes of all tiles, as the processor reads them.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t num_rows[16] = {};

  void set(int tile, int rows, int bytes) {
    num_rows[tile] = static_cast<std::uint8_t>(rows);
    row_bytes[tile] = static_cast<std::uint16_t>(bytes);
  }
};
static_assert(sizeof(TileShapes) == 64);

// Those for so many rows and inputs. Where there are more rows than a tile has, every second tile of
// sums is of the rows that follow.
inline TileShapes tile_shapes(int num_rows, int num_quads) {
  const bool has_two = num_rows > kRowsOfTile;
  const int rows_of[2] = {has_two ? kRowsOfTile : num_rows, has_two ? num_rows - kRowsOfTile : num_rows};
  TileShapes shapes;
  for (int tile = 0; tile < kSumTiles; ++tile) shapes.set(tile, rows_of[tile % 2], 4 * kOutputsOfTile);
  for (int i = 0; i < 2; ++i) {
    shapes.set(kFirstRowTile + i, rows_of[i], 4 * num_quads);
    shapes.set(kFirstWeightTile + i, num_quads, 4 * kOutputsOfTile);
  }
  return shapes;
}

// Gives the calling thread's tiles these shapes. Loading shapes takes some 200 cycles and looking at
// them 20, and they seldom change. So they are left as they are after a product, for which the system
// saves 8 KiB more where it takes the thread away; other libraries may change them in between.
inline void shape_tiles(const TileShapes& shapes) {
  TileShapes present;
  asm volatile("sttilecfg %0" : "=m"(present));
  if (std::memcmp(&present, &shapes, sizeof shapes) != 0) {
    asm volatile("ldtilecfg %0" : : "m"(shapes));
  }
}

template <int T>
inline void zero_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(T));
}
// Rows of a tile are `stride` bytes apart.
template <int T>
inline void load_tile(const void* from, std::ptrdiff_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(T) : "memory");
}
template <int T>
inline void store_tile(void* to, std::ptrdiff_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(T) : "memory");
}
// Σ q (w + 128) of four each, added to a tile of sums.
template <int kSums, int kRows, int kWeights>
inline void multiply_tiles() {
  asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kRows), "i"(kWeights));
}

// Adds the products of so many tiles of inputs to sums in memory, or puts them there. Tiles of sums
// (`S`) go row by row of tiles first, so that one of weights meets all rows.
template <int kNumRowTiles, int... S>
inline void add_tiles(const Quantum* rows, std::ptrdiff_t stride, const std::uint8_t* panel,
                      int num_tiles, bool is_first, std::int32_t* to,
                      std::integer_sequence<int, S...>) {
  constexpr int kOutputs = kSumTiles / kNumRowTiles * kOutputsOfTile;  // worked on together
  constexpr std::ptrdiff_t kStride = kSumStride * sizeof(std::int32_t);
  for (int first = 0; first < kSumStride; first += kOutputs) {
    const auto sums = [&](int tile) {
      return to + tile % kNumRowTiles * kRowsOfTile * kSumStride + first +
             tile / kNumRowTiles * kOutputsOfTile;
    };
    if (is_first) {
      (zero_tile<S>(), ...);
    } else {
      (load_tile<S>(sums(S), kStride), ...);
    }
    const std::uint8_t* weights = panel + 4 * first;
    const Quantum* inputs = rows;
    for (int i = 0; i < num_tiles; ++i) {
      load_tile<kFirstRowTile>(inputs, stride);
      if constexpr (kNumRowTiles == 2) {
        load_tile<kFirstRowTile + 1>(inputs + kRowsOfTile * stride, stride);
      }
      const auto add = [&]<int T>(std::integral_constant<int, T>) {
        constexpr int kWeights = kFirstWeightTile + T / kNumRowTiles % 2;
        if constexpr (T % kNumRowTiles == 0) {
          load_tile<kWeights>(weights + T / kNumRowTiles * kTileBytes, kQuadBytes);
        }
        multiply_tiles<T, kFirstRowTile + T % kNumRowTiles, kWeights>();
      };
      (add(std::integral_constant<int, S>()), ...);
      weights += kQuadsOfTile * kQuadBytes;
      inputs += kTileBytes;
    }
    (store_tile<S>(sums(S), kStride), ...);
  }
}

// The integer sums of up to 32 rows with a panel, stored row by row. Inputs that are no whole tile
// are added by tiles of their own shape: what follows a panel is not its own.
inline void sums_in_tiles(const Quantum* rows, std::ptrdiff_t stride, int num_rows,
                          const std::uint8_t* panel, int num_quads, std::int32_t* to) {
  const int num_whole = num_quads / kQuadsOfTile, num_rest = num_quads % kQuadsOfTile;
  const auto add = [&](int quads, int first_tile, int num_tiles) {
    shape_tiles(tile_shapes(num_rows, quads));
    const auto add_of = num_rows > kRowsOfTile ? add_tiles<2, 0, 1, 2, 3> : add_tiles<1, 0, 1, 2, 3>;
    add_of(rows + first_tile * kTileBytes, stride, panel + first_tile * kQuadsOfTile * kQuadBytes,
           num_tiles, first_tile == 0, to, std::make_integer_sequence<int, kSumTiles>());
  };
  if (num_whole > 0) add(kQuadsOfTile, 0, num_whole);
  if (num_rest > 0) add(num_rest, num_whole, 1);
}

}  // namespace dragoman
