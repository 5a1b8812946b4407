#include "rows.h"

#include <cmath>
#include <cstring>

namespace dragoman {

void QuantisedRows::quantise(int index, const float* from, int width) {
  Ints most = zero_ints();
  for (int i = 0; i < width; i += kLanes) {
    most = larger_int(most, magnitude_bits(load_first(from + i, width - i)));
  }
  const std::int32_t bits = largest_of(most);
  float largest;
  std::memcpy(&largest, &bits, sizeof largest);
  const Floats inverse = all(largest > 0.0f ? 127.0f / largest : 0.0f);
  Quantum* to = values.data() + std::size_t(index) * stride;
  Ints all_excess = zero_ints();
  for (int i = 0; i < stride; i += kLanes) {
    const Floats x = mul(load_first(from + i, i < width ? width - i : 0), inverse);
    // What is no integer, where a row is not finite or next to zero, becomes the smallest one.
    const Ints quanta = larger_int(to_ints(x), all_ints(-127));
    all_excess = add_ints(all_excess, excess_of(quanta));
    store_quanta(to + i, quanta);
  }
  scale[index] = largest / 127.0f;
  excess[index] = sum_of(all_excess);
}

void normalise(const Norm& norm, const float* from, float* to) {
  const int width = norm.width;
  Floats mean = zeros();
  if (!norm.is_rms) {
    Floats sum = zeros();
    for (int i = 0; i < width; i += kLanes) sum = add(sum, load_first(from + i, width - i));
    mean = all(sum_of(sum) / static_cast<float>(width));
  }
  Floats squares = zeros();
  for (int i = 0; i < width; i += kLanes) {
    const Floats x = keep_first(sub(load_first(from + i, width - i), mean), width - i);
    squares = mul_add(x, x, squares);
  }
  const float variance = sum_of(squares) / static_cast<float>(width);
  const Floats factor = all(1.0f / std::sqrt(variance + norm.epsilon));
  for (int i = 0; i < width; i += kLanes) {
    const int num = width - i;
    const Floats x = sub(load_first(from + i, num), mean);
    const Floats y = mul_add(mul(x, factor), load_first(norm.weight.data() + i, num),
                             load_first(norm.bias.data() + i, num));
    store_first(to + i, y, num);
  }
}

}  // namespace dragoman
