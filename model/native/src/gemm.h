// int8 products: rows of activations times a matrix that was packed once.
//
// Product instructions multiply unsigned by signed bytes, four at a time. Where weights are the
// unsigned ones, as they are packed, Σ (w + 128) q = Σ w q + 128 Σ q, and the last term belongs to
// the row alone (`QuantisedRows::excess`). Where two products are summed in 16 bits first, which
// may be too few, what could be too much is set apart beforehand and added afterwards (`add_rest`).
// Sums are exact integers on every instruction set, so the order of rows, panels and threads cannot
// change a result.
//
// A block of rows meets a panel of 64 outputs in tiles that fit into the registers: with 32 of them
// six rows by 64 outputs are 24 accumulators, four registers of weights and one of activations.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "matrix.h"
#include "products.h"
#include "rows.h"
#include "share.h"

namespace dragoman {

// Vectors of outputs of a panel, and registers of sums.
constexpr int kVectors = kPanel / kLanes;
constexpr int kPairVectors = kVectors / 2;
constexpr int kPanelSums = kPanel / kSumLanes;

// An array that lambdas may give back.
template <class T, int N>
struct Several {
  T of[N];
};

// What make(i) gives for i from 0 to N - 1.
template <int N, class Make>
inline auto array_of(const Make& make) {
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    return Several<decltype(make(0)), N>{{make(I)...}};
  }(std::make_integer_sequence<int, N>());
}

// The integer sums of a row with 64 outputs to these: scaled, with their biases.
inline void to_outputs(const QuantisedRows& rows, int row, const std::int32_t* sum,
                       const float* scales, const float* biases, Floats* value) {
  const Floats scale = all(rows.scale[row]);
  for (int v = 0; v < kVectors; ++v) {
    const Ints exact = without(load_ints(sum + v * kLanes), rows.excess[row]);
    const Floats factor = mul(scale, load(scales + v * kLanes));
    value[v] = mul_add(to_floats(exact), factor, load(biases + v * kLanes));
  }
}

// Adds the products of R rows with N registers of weights, which are in sums by row. Indices are
// spelled out at compile time (`I` counts sums): only so do compilers keep all sums in registers.
// Either a row meets all weights, which stay in registers, or weights meet all rows.
template <int R, int N, bool kRowByRow, class WeightsOf, class FourOf, int... I>
[[gnu::always_inline]] inline void add_products(Sums* sum, const WeightsOf& weights_of,
                                                const FourOf& activations_of,
                                                std::integer_sequence<int, I...>) {
  if constexpr (kRowByRow) {
    const auto weights = array_of<N>(weights_of);
    Activations activations{};
    ((activations = I % N == 0 ? activations_of(I / N) : activations,
      dot_four(sum[I], weights.of[I % N], activations)),
     ...);
  } else {
    const auto activations = array_of<R>(activations_of);
    Weights weights{};
    ((weights = I % R == 0 ? weights_of(I / R) : weights,
      dot_four(sum[I % R * N + I / R], weights, activations.of[I % R])),
     ...);
  }
}

// Four inputs that are fetched ahead of those that are worked on.
constexpr int kAhead = 16;

// The integer sums of R rows with V registers of outputs, stored row by row. Fetches the whole panel
// into the caches as it goes if told to.
template <int R, int V, bool kFetches, int... I>
inline void dot(const Quantum* rows, std::ptrdiff_t stride, const std::uint8_t* panel, int num_quads,
                std::int32_t* to, std::integer_sequence<int, I...> indices) {
  constexpr int kSums = R * V * static_cast<int>(sizeof(Sums) / sizeof(Weights));
  constexpr int kNeeded = kSums + kWeightRegisters * V + 1 + kOtherRegisters;
  Sums sum[R * V] = {((void)I, zero_sums())...};
  for (int quad = 0; quad < num_quads; ++quad) {
    if constexpr (kFetches) {
      for (int at = 0; at < 4 * kPanel; at += 64) {
        __builtin_prefetch(panel + kAhead * 4 * kPanel + at);
      }
    }
    add_products<R, V, kNeeded <= kNumRegisters>(
        sum, [&](int v) { return load_weights(panel + v * kSumBytes); },
        [&](int row) { return four_activations(rows + row * stride); }, indices);
    panel += 4 * kPanel;
    rows += 4;
  }
  (store_sums(to + I / V * kPanel + I % V * kSumLanes, sum[I]), ...);
}

// Adds the products of what was set apart of a row, with 64 outputs, to the row's sums.
template <int... V>
inline void add_rest(const QuantisedRows& rows, int row, const std::uint8_t* panel, std::int32_t* sums,
                     std::integer_sequence<int, V...>) {
  if (rows.quads_of_rest(row).empty()) return;
  Sums sum[kPanelSums] = {((void)V, zero_sums())...};
  for (const int quad : rows.quads_of_rest(row)) {
    const Activations activations = four_activations(rows.rest(row) + quad * 4);
    const std::uint8_t* weights = panel + std::size_t(quad) * 4 * kPanel;
    (dot_four(sum[V], load_weights(weights + V * kSumBytes), activations), ...);
  }
  alignas(64) std::int32_t found[kPanel];
  (store_sums(found + V * kSumLanes, sum[V]), ...);
  for (int i = 0; i < kPanel; ++i) sums[i] += found[i];
}

// The products of R rows from `begin` on with one panel, still as integers.
template <int R>
struct Block {
  static constexpr int kRows = R;

  Block(const Matrix& matrix, const QuantisedRows& rows, int begin, int panel,
        std::int32_t (*sum)[kPanel])
      : matrix(matrix), rows(rows), begin(begin), panel(panel), sum(sum) {}

  const Matrix& matrix;
  const QuantisedRows& rows;
  int begin, panel;
  std::int32_t (*sum)[kPanel];

  int num_outputs() const { return matrix.num_outputs(); }

  // The 64 outputs of row `begin + r`.
  void outputs(int r, Floats* value) const {
    to_outputs(rows, begin + r, sum[r], matrix.scale(panel), matrix.bias(panel), value);
  }
};

// Where a tile has fewer outputs than a panel, the first one sees only a part of every cache line
// that the others want soon: what follows is fetched for all of them.
template <int R, class Sink>
inline void multiply_block(const Matrix& matrix, int panel, const QuantisedRows& rows, int begin,
                           Sink& sink) {
  constexpr int kTile = tile_vectors(R);
  static_assert(kPanelSums % kTile == 0);
  alignas(64) std::int32_t sum[R][kPanel];
  Block<R> block(matrix, rows, begin, panel, sum);
  const auto tile = [&]<bool kFetches>(int first, std::bool_constant<kFetches>) {
    const std::uint8_t* weights = matrix.panel(panel) + first * kSumBytes;
    std::int32_t* to = sum[0] + first * kSumLanes;
    if constexpr (kHasRowPairs && R > 1) {
      dot_row_pairs<R, kTile, kFetches>(rows.row(begin), rows.stride, weights, matrix.num_quads(), to);
    } else {
      dot<R, kTile, kFetches>(rows.row(begin), rows.stride, weights, matrix.num_quads(), to,
                              std::make_integer_sequence<int, R * kTile>());
    }
  };
  tile(0, std::bool_constant<(kTile < kPanelSums)>());
  for (int first = kTile; first < kPanelSums; first += kTile) tile(first, std::false_type());
  if constexpr (kSaturates) {
    for (int r = 0; r < R; ++r) {
      add_rest(rows, begin + r, matrix.panel(panel), sum[r],
               std::make_integer_sequence<int, kPanelSums>());
    }
  }
  sink(block);
}

// The rows that are left when there is no whole block: at most R.
template <int R, class Sink>
inline void multiply_rest(const Matrix& matrix, int panel, const QuantisedRows& rows, int begin,
                          int end, Sink& sink) {
  if constexpr (R > 0) {
    if (end - begin < R) {
      multiply_rest<R - 1>(matrix, panel, rows, begin, end, sink);
    } else {
      multiply_block<R>(matrix, panel, rows, begin, sink);
    }
  }
}

// Whether the first cache holds a panel of 512 inputs, 32 KiB, beside the rows that meet it. What a system
// does not tell of its caches counts as large.
inline bool has_large_first_cache() {
#ifdef _SC_LEVEL1_DCACHE_SIZE
  static const long num_bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE);
  return num_bytes <= 0 || num_bytes >= 48 * 1024;
#else
  return true;
#endif
}

// A panel that is read soon, fetched piece by piece while another one is worked on: block after block of
// rows meets a panel in the caches, but the first block would wait for the memory. Only where it takes no
// other's place: a first cache of 48 KiB gained up to a fifth by it, one of 32 lost as much.
class NextPanel {
 public:
  // The panel in so many pieces; nothing where there is no such panel, or only one piece to hide it behind.
  NextPanel(const Matrix& matrix, int panel, int num_pieces) {
    if (panel >= matrix.num_panels() || num_pieces < 2 || !has_large_first_cache()) return;
    next_ = matrix.panel(panel);
    end_ = matrix.panel(panel + 1);
    size_ = ((end_ - next_) / num_pieces + kLine) / kLine * kLine;
  }

  void fetch_piece() {
    const std::uint8_t* end = std::min(next_ + size_, end_);
    for (; next_ < end; next_ += kLine) __builtin_prefetch(next_);
  }

 private:
  static constexpr std::ptrdiff_t kLine = 64;
  const std::uint8_t* next_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  std::ptrdiff_t size_ = 0;
};

// Blocks of at most R rows whose sums are there.
template <int R, class Sink>
inline void give_blocks(const Matrix& matrix, int panel, const QuantisedRows& rows, int begin,
                        int end, std::int32_t (*sum)[kPanel], Sink& sink) {
  for (; begin + R <= end; begin += R, sum += R) {
    sink(Block<R>(matrix, rows, begin, panel, sum));
  }
  if constexpr (R > 1) give_blocks<R - 1>(matrix, panel, rows, begin, end, sum, sink);
}

template <class Sink>
inline void multiply_panel(const Matrix& matrix, int panel, const QuantisedRows& rows, int begin,
                           int end, NextPanel next, Sink& sink) {
  if constexpr (kHasTiles) {
    alignas(64) std::int32_t sum[kTileRows][kPanel];
    while (end - begin >= kLeastTileRows) {
      for (int rows_fetched = 0; rows_fetched < kTileRows; rows_fetched += kBlockRows) next.fetch_piece();
      const int stop = std::min(begin + kTileRows, end);
      sums_in_tiles(rows.row(begin), rows.stride, stop - begin, matrix.panel(panel),
                    matrix.num_quads(), sum[0]);
      give_blocks<kBlockRows>(matrix, panel, rows, begin, stop, sum, sink);
      begin = stop;
    }
    multiply_rest<kLeastTileRows - 1>(matrix, panel, rows, begin, end, sink);
  } else {
    for (; begin + kBlockRows <= end; begin += kBlockRows) {
      next.fetch_piece();
      multiply_block<kBlockRows>(matrix, panel, rows, begin, sink);
    }
    next.fetch_piece();
    multiply_rest<kBlockRows - 1>(matrix, panel, rows, begin, end, sink);
  }
}

// Rows of a share times matrix, panel by panel: sink(block, thread) gets what several rows have with
// one panel, on any thread of the share.
template <class Sink>
void multiply_in_blocks(const Share& share, const Matrix& matrix, const QuantisedRows& rows,
                        Sink&& sink) {
  constexpr int kChunk = 48;  // rows of a task, where panels alone would be too few tasks
  constexpr int kManyPanels = 16;
  const bool is_many = matrix.num_panels() >= kManyPanels * share.num_threads();
  const int chunk = is_many ? std::max(share.num_rows(), 1) : kChunk;
  const int num_chunks = (share.num_rows() + chunk - 1) / chunk;
  const int num_blocks = (share.num_rows() + kBlockRows - 1) / kBlockRows;
  share.run(matrix.num_panels() * num_chunks, [&](int task, int thread) {
    const int panel = task / num_chunks, begin = share.begin() + task % num_chunks * chunk;
    const auto on_thread = [&](const auto& block) { sink(block, thread); };
    multiply_panel(matrix, panel, rows, begin, std::min(begin + chunk, share.end()),
                   NextPanel(matrix, panel + share.num_threads(), num_chunks == 1 ? num_blocks : 0),
                   on_thread);
  });
}

// The same, row by row: sink(row, panel, value[4]) gets the 64 outputs of a row.
template <class Sink>
void multiply(const Share& share, const Matrix& matrix, const QuantisedRows& rows, Sink sink) {
  multiply_in_blocks(share, matrix, rows, [&](const auto& block, int) {
    for (int r = 0; r < block.kRows; ++r) {
      Floats value[kVectors];
      block.outputs(r, value);
      sink(block.begin + r, block.panel, value);
    }
  });
}

}  // namespace dragoman
