// Lexical shortlists: which target tokens a sentence may choose, and the output projection of these
// alone.
//
// The definition of the set is model/shortlist.py. A set belongs to one sentence, and sums are exact
// integers, so what runs beside it changes nothing. Weights are read where they are, an output in
// one piece, and not packed for each sentence: sentences that run together have many tokens in
// common, which then stay in the caches, and a list costs next to nothing when it is made.
#pragma once

#include "network.h"
#include "team.h"

namespace dragoman {

// What one sentence may choose from. Places in the list are in the order of tokens; those up to the
// next whole panel are padding, which nothing chooses.
struct List {
  std::vector<std::int32_t> tokens;         // ascending
  std::vector<std::uint8_t> is_suppressed;  // by place
  std::vector<const std::uint8_t*> rows;    // by place, padding included: the weights + 128
  Buffer<float> scale, bias;                // likewise

  int num_tokens() const { return static_cast<int>(tokens.size()); }
  int num_panels() const { return (num_tokens() + kPanel - 1) / kPanel; }
};

// A table of target tokens by source token. Belongs to one thread.
class Shortlist {
 public:
  // `offsets` has one number more than there are source tokens: where each one's tokens begin in
  // `ids`. Raises std::invalid_argument where a number is none of the network's.
  Shortlist(std::shared_ptr<Network> network, std::vector<std::int32_t> always,
            std::vector<std::int32_t> offsets, std::vector<std::int32_t> ids, bool with_source);

  // Makes the list of a sentence: the tokens of its source tokens, and those of `also`.
  void choose(const std::vector<std::int32_t>& source, const std::vector<std::int64_t>& also,
              List& list);

  // Bytes of one output's weights, in whole vectors.
  int row_bytes() const { return row_bytes_; }
  const Network& network() const { return *network_; }

 private:
  void check() const;
  void add(std::int64_t token);
  void find_weights(List& list) const;

  std::shared_ptr<Network> network_;
  std::vector<std::int32_t> always_, offsets_, ids_;
  bool with_source_;
  int row_bytes_;
  Buffer<std::uint8_t> rows_;            // the output projection, output by output
  std::vector<std::uint8_t> is_listed_;  // by target token; all zero between two sentences
  std::size_t num_listed_ = 0;
};

// The products of R rows from `begin` on with one panel of a list, still as integers.
template <int R>
struct ListedBlock {
  static constexpr int kRows = R;

  ListedBlock(const List& list, const QuantisedRows& rows, int begin, int panel)
      : list(list), rows(rows), begin(begin), panel(panel) {}

  const List& list;
  const QuantisedRows& rows;
  int begin, panel;
  alignas(64) std::int32_t sum[R][kPanel];

  int num_outputs() const { return list.num_tokens(); }

  // The 64 outputs of row `begin + r`, as those of a `Block`.
  void outputs(int r, __m512* value) const {
    const __m512i excess = _mm512_set1_epi32(rows.excess[begin + r]);
    const __m512 scale = _mm512_set1_ps(rows.scale[begin + r]);
    for (int v = 0; v < kVectors; ++v) {
      const int place = panel * kPanel + v * kLanes;
      const __m512i exact = _mm512_sub_epi32(_mm512_load_si512(sum[r] + v * kLanes), excess);
      const __m512 factor = _mm512_mul_ps(scale, _mm512_load_ps(list.scale.data() + place));
      value[v] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), factor,
                                 _mm512_load_ps(list.bias.data() + place));
    }
  }
};

// Sixteen vectors to the sum of each, in their order.
inline __m512i sums_of(const __m512i* from) {
  __m512i twos[8], fours[4];
  for (int i = 0; i < 8; ++i) {
    twos[i] = _mm512_add_epi32(_mm512_unpacklo_epi32(from[2 * i], from[2 * i + 1]),
                               _mm512_unpackhi_epi32(from[2 * i], from[2 * i + 1]));
  }
  for (int i = 0; i < 4; ++i) {
    fours[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(twos[2 * i], twos[2 * i + 1]),
                                _mm512_unpackhi_epi64(twos[2 * i], twos[2 * i + 1]));
  }
  const auto fold = [](__m512i a, __m512i b) {
    return _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xDD));
  };
  return fold(fold(fours[0], fours[1]), fold(fours[2], fours[3]));
}

// The sums of R rows with 16 / R outputs, row by row. Spelled out at compile time: see `dot`.
template <int R, int... T, int... I>
inline __m512i dot_listed(const std::int8_t* rows, std::ptrdiff_t stride,
                          const std::uint8_t* const* weights, int num_bytes,
                          std::integer_sequence<int, T...>, std::integer_sequence<int, I...>) {
  constexpr int kOutputs = sizeof...(T);
  __m512i sum[R * kOutputs] = {((void)I, _mm512_setzero_si512())...};
  for (int at = 0; at < num_bytes; at += 64) {
    const __m512i loaded[kOutputs] = {_mm512_load_si512(weights[T] + at)...};
    __m512i activations = _mm512_setzero_si512();
    ((activations = I % kOutputs == 0 ? _mm512_load_si512(rows + I / kOutputs * stride + at)
                                      : activations,
      dot_four(sum[I], loaded[I % kOutputs], activations)),
     ...);
  }
  return sums_of(sum);
}

template <int R, class Sink>
inline void multiply_listed(const List& list, int panel, int row_bytes, const QuantisedRows& rows,
                            int begin, Sink& sink) {
  constexpr int kOutputs = kLanes / R;
  ListedBlock<R> block(list, rows, begin, panel);
  for (int first = 0; first < kPanel; first += kOutputs) {
    alignas(64) std::int32_t sums[R][kOutputs];
    _mm512_store_si512(sums, dot_listed<R>(rows.row(begin), rows.stride,
                                           list.rows.data() + panel * kPanel + first, row_bytes,
                                           std::make_integer_sequence<int, kOutputs>(),
                                           std::make_integer_sequence<int, kLanes>()));
    for (int r = 0; r < R; ++r) std::copy_n(sums[r], kOutputs, block.sum[r] + first);
  }
  sink(block);
}

// Rows `begin` to `end` with one panel of a list.
template <class Sink>
inline void multiply_listed_rows(const List& list, int panel, int row_bytes,
                                 const QuantisedRows& rows, int begin, int end, Sink& sink) {
  for (; begin + 4 <= end; begin += 4) multiply_listed<4>(list, panel, row_bytes, rows, begin, sink);
  if (begin + 2 <= end) {
    multiply_listed<2>(list, panel, row_bytes, rows, begin, sink);
    begin += 2;
  }
  if (begin < end) multiply_listed<1>(list, panel, row_bytes, rows, begin, sink);
}

}  // namespace dragoman
