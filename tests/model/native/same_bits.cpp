// Prints checksums of what the kernels compute, for comparing instruction sets that no one machine
// has: networks, sentences and searches follow from fixed numbers, so every line must be the same
// wherever this is compiled. Compiled with the kernels of one level (`make test-same-bits`).

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "level.h"

using namespace dragoman;

namespace {

constexpr int kPositions = 24;
constexpr std::int64_t kEos = 1;

// Numbers that look random and follow from a seed (splitmix64).
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t bits = state_ += 0x9E3779B97F4A7C15u;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    return bits ^ (bits >> 31);
  }
  int below(int limit) { return static_cast<int>(next() % limit); }
  // Between -1 and 1, exactly representable.
  float one() { return static_cast<float>(below(2049) - 1024) / 1024.0f; }
  std::vector<float> floats(int num, float factor, float offset = 0.0f) {
    std::vector<float> values(num);
    for (float& value : values) value = offset + factor * one();
    return values;
  }

 private:
  std::uint64_t state_;
};

// FNV-1a over bytes.
class Checksum {
 public:
  template <class T>
  void add(const T* values, std::size_t num) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(values);
    for (std::size_t i = 0; i < num * sizeof(T); ++i) sum_ = (sum_ ^ bytes[i]) * 0x100000001B3u;
  }
  std::uint64_t value() const { return sum_; }

 private:
  std::uint64_t sum_ = 0xCBF29CE484222325u;
};

struct Shape {
  const char* name;
  int d_model, num_heads, head_width, d_ff, num_tokens;
  bool is_pre_norm, is_rms, is_gated;
  Activation activation;
  DecoderCell cell;
};

SharedMatrix matrix(Numbers& numbers, int num_outputs, int num_inputs, float size = 1.0f) {
  std::vector<std::int8_t> quanta(std::size_t(num_outputs) * num_inputs);
  for (auto& quantum : quanta) quantum = static_cast<std::int8_t>(numbers.below(256) - 128);
  std::vector<float> scale = numbers.floats(num_outputs, size / 2048, size / 1024);
  std::vector<float> bias = numbers.floats(num_outputs, 0.25f);
  return std::make_shared<Matrix>(std::make_shared<WeightMemory>(), quanta.data(), scale.data(),
                                  bias.data(), num_outputs, num_inputs, -INFINITY);
}

SharedNorm norm(Numbers& numbers, const Shape& shape) {
  const std::vector<float> weight = numbers.floats(shape.d_model, 0.25f, 1.0f);
  const std::vector<float> bias = numbers.floats(shape.d_model, 0.25f);
  return std::make_shared<Norm>(weight.data(), bias.data(), shape.d_model, 1e-5f, shape.is_rms);
}

Positions positions(Numbers& numbers, int d_model) {
  const auto values = std::make_shared<Buffer<float>>();
  const std::vector<float> table = numbers.floats(kPositions * d_model, 1.0f);
  values->reserve(table.size());
  std::memcpy(values->data(), table.data(), table.size() * sizeof(float));
  return {values, d_model};
}

std::shared_ptr<Network> make_network(const Shape& shape) {
  Numbers numbers(42);
  const int width = shape.d_model, inner = shape.num_heads * shape.head_width;
  const auto pair_of = [](int outputs) { return 2 * round_up(outputs, kPair); };
  auto network = std::make_shared<Network>();
  network->d_model = width;
  network->encoder_d_ff = network->decoder_d_ff = shape.d_ff;
  network->max_positions = kPositions;
  network->heads = {shape.num_heads, shape.head_width, shape.head_width, 0.25f};
  network->is_pre_norm = shape.is_pre_norm;
  network->activation = shape.activation;
  network->is_gated = shape.is_gated;
  network->decoder_cell = shape.cell;
  network->source_table = network->target_table = matrix(numbers, shape.num_tokens, width);
  network->output = matrix(numbers, shape.num_tokens, width, 0.25f);
  network->source_positions = network->target_positions = positions(numbers, width);
  network->is_suppressed.assign(shape.num_tokens, 0);
  const auto up = [&] {
    return matrix(numbers, shape.is_gated ? pair_of(shape.d_ff) : shape.d_ff, width);
  };
  for (int layer = 0; layer < 2; ++layer) {
    network->encoder.push_back({matrix(numbers, 3 * inner, width), matrix(numbers, width, inner),
                                up(), matrix(numbers, width, shape.d_ff), norm(numbers, shape),
                                norm(numbers, shape)});
    const SharedMatrix query_key_value = matrix(numbers, 3 * inner, width);
    const SharedMatrix attention_output = matrix(numbers, width, inner);
    const SharedMatrix forget_candidate = matrix(numbers, pair_of(width), width);
    const std::vector<SharedMatrix> attention = {query_key_value, attention_output};
    const std::vector<SharedMatrix> unit = {forget_candidate};
    network->decoder.push_back({shape.cell == DecoderCell::kSsru ? unit : attention,
                                matrix(numbers, inner, width), matrix(numbers, 2 * inner, width),
                                matrix(numbers, width, inner), up(),
                                matrix(numbers, width, shape.d_ff), norm(numbers, shape),
                                norm(numbers, shape), norm(numbers, shape)});
  }
  network->encoder_norm = norm(numbers, shape);
  network->decoder_norm = norm(numbers, shape);
  return network;
}

std::vector<Request> requests(const Shape& shape) {
  Numbers numbers(7);
  std::vector<Request> made;
  const int lengths[] = {1, 5, 16, 17, 9}, beams[] = {4, 1, 2, 3, 2};
  int row = 0;
  for (int i = 0; i < 5; ++i) {
    Request request{};
    request.name = request.slot = i;
    for (int beam = 0; beam < beams[i]; ++beam) request.rows.push_back(row++);
    for (int t = 0; t < lengths[i]; ++t) request.source.push_back(numbers.below(shape.num_tokens));
    request.prefix = {kEos};
    request.settings = {beams[i], 2 * beams[i], 1, 12, 1.0, StoppingRule::kExact, i % 2 == 0, {}};
    if (i == 4) request.settings.sampling = {1.5, 20, 0.9, 11};
    made.push_back(request);
  }
  return made;
}

std::unique_ptr<AnySession> open(std::shared_ptr<Network> network,
                                 std::shared_ptr<Shortlist> shortlist = nullptr) {
  return level().open(std::move(network), std::make_shared<Team>(1), {12, 5, kPositions, kPositions},
                      {kEos, -1}, std::move(shortlist));
}

std::uint64_t translations(const Shape& shape, std::shared_ptr<Network> network,
                           std::shared_ptr<Shortlist> shortlist) {
  const auto session = open(std::move(network), std::move(shortlist));
  session->admit(requests(shape));
  Checksum sum;
  for (int num_left = 5; num_left > 0;) {
    for (const Finished& sentence : session->step()) {
      --num_left;
      for (const Hypothesis& found : sentence.hypotheses) {
        sum.add(&found.score, 1);
        sum.add(found.trail.tokens.data(), found.trail.tokens.size());
        sum.add(found.trail.log_probs.data(), found.trail.log_probs.size());
        sum.add(found.trail.sources.data(), found.trail.sources.size());
      }
    }
  }
  return sum.value();
}

std::uint64_t log_probs(const Shape& shape, std::shared_ptr<Network> network) {
  const auto session = open(std::move(network));
  Numbers numbers(5);
  std::vector<std::int32_t> ids(22), lengths = {3, 18, 1}, slots = {2, 0, 1};
  for (auto& id : ids) id = numbers.below(shape.num_tokens);
  session->encode(ids.data(), lengths.data(), slots.data(), 3);
  Checksum sum;
  for (int num_rows = 1; num_rows <= 12; ++num_rows) {
    std::vector<StepRow> rows;
    for (int row = 0; row < num_rows; ++row) {
      rows.push_back({numbers.below(shape.num_tokens), row, row % 3, 0});
    }
    std::vector<float> found(num_rows * shape.num_tokens);
    std::vector<std::int64_t> best(found.size()), attended(num_rows);
    session->feed(rows.data(), num_rows, shape.num_tokens, nullptr, nullptr, found.data(),
                  best.data(), attended.data());
    sum.add(found.data(), found.size());
    sum.add(best.data(), best.size());
    sum.add(attended.data(), attended.size());
  }
  return sum.value();
}

std::shared_ptr<Shortlist> shortlist(const Shape& shape, std::shared_ptr<Network> network) {
  Numbers numbers(3);
  std::vector<std::int32_t> always = {0, 1, 2, 5}, offsets(shape.num_tokens + 1), ids;
  for (int token = 0; token < shape.num_tokens; ++token) {
    for (int i = 0; i < 9; ++i) ids.push_back(numbers.below(shape.num_tokens));
    offsets[token + 1] = static_cast<std::int32_t>(ids.size());
  }
  return std::make_shared<Shortlist>(std::move(network), always, offsets, ids, true);
}

}  // namespace

int main() {
  std::fprintf(stderr, "%s\n", level().instruction_set);
  const auto past = DecoderCell::kSelfAttention, unit = DecoderCell::kSsru;
  const Shape shapes[] = {
      {"relu", 64, 4, 16, 128, 70, false, false, false, Activation::kRelu, past},
      {"gelu", 100, 2, 48, 90, 200, true, false, false, Activation::kGelu, past},
      {"gated", 36, 3, 32, 50, 133, true, true, true, Activation::kGeluTanh, past},
      {"silu", 20, 1, 80, 50, 37, false, true, true, Activation::kSilu, past},
      {"sigmoid", 70, 1, 16, 64, 65, true, false, false, Activation::kGeluSigmoid, unit},
      {"unit", 64, 4, 16, 70, 400, false, false, false, Activation::kRelu, unit},
  };
  for (const Shape& shape : shapes) {
    const auto network = make_network(shape);
    std::printf("%s log_probs %016llx searched %016llx listed %016llx\n", shape.name,
                static_cast<unsigned long long>(log_probs(shape, network)),
                static_cast<unsigned long long>(translations(shape, network, nullptr)),
                static_cast<unsigned long long>(
                    translations(shape, network, shortlist(shape, network))));
  }
}
