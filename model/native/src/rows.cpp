#include "rows.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace dragoman {
namespace {

// Calls body(at, num) for the vectors of so many floats. All but the last one are full, which the compiler
// knows: no masks are made for them.
template <class Body>
inline void for_vectors(int width, const Body& body) {
  int at = 0;
  for (; at + kLanes <= width; at += kLanes) body(at, std::integral_constant<int, kLanes>());
  if (at < width) body(at, width - at);
}

}  // namespace

void QuantisedRows::quantise(int index, const float* from, int width) {
  Ints most = zero_ints();
  for_vectors(width, [&](int i, auto num) {
    most = larger_int(most, magnitude_bits(load_first(from + i, num)));
  });
  const std::int32_t bits = largest_of(most);
  float largest;
  std::memcpy(&largest, &bits, sizeof largest);
  const Floats inverse = all(largest > 0.0f ? 127.0f / largest : 0.0f);
  Quantum* to = values.data() + std::size_t(index) * stride;
  Ints sum = zero_ints();
  const auto quantise_vector = [&](int i, auto num) {
    const Floats x = mul(load_first(from + i, num), inverse);
    // What is no integer, where a row is not finite or next to zero, becomes the smallest one.
    const Ints quanta = larger_int(to_ints(x), all_ints(-127));
    sum = add_ints(sum, quanta);
    store_quanta(to + i, quanta);
  };
  for_vectors(width, quantise_vector);
  for (int i = round_up(width, kLanes); i < stride; i += kLanes) quantise_vector(i, 0);
  scale[index] = largest / 127.0f;
  excess[index] = 128 * sum_of(sum);
  if constexpr (kSaturates) set_rest_apart(index);
}

void QuantisedRows::set_rest_apart(int index) {
  Quantum* row = values.data() + std::size_t(index) * stride;
  Quantum* rest = rests.data() + std::size_t(index) * stride;
  std::int32_t* const quads = rest_quads.data() + std::size_t(index) * (stride / 4);
  std::int32_t* next = quads;
  for (int at = 0; at < stride; at += kSumBytes) {
    for (unsigned some = set_apart(row + at, rest + at); some != 0; some &= some - 1) {
      *next++ = at / 4 + std::countr_zero(some);
    }
  }
  num_rests[index] = static_cast<std::int32_t>(next - quads);
}

void normalise(const Norm& norm, const float* from, float* to) {
  const int width = norm.width;
  Floats mean = zeros();
  if (!norm.is_rms) {
    Floats sum = zeros();
    for_vectors(width, [&](int i, auto num) { sum = add(sum, load_first(from + i, num)); });
    mean = all(sum_of(sum) / static_cast<float>(width));
  }
  Floats squares = zeros();
  for_vectors(width, [&](int i, auto num) {
    const Floats x = keep_first(sub(load_first(from + i, num), mean), num);
    squares = mul_add(x, x, squares);
  });
  const float variance = sum_of(squares) / static_cast<float>(width);
  const Floats factor = all(1.0f / std::sqrt(variance + norm.epsilon));
  for_vectors(width, [&](int i, auto num) {
    const Floats x = sub(load_first(from + i, num), mean);
    const Floats y = mul_add(mul(x, factor), load_first(norm.weight.data() + i, num),
                             load_first(norm.bias.data() + i, num));
    store_first(to + i, y, num);
  });
}

}  // namespace dragoman
