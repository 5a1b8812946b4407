#include "output.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace dragoman {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

// Weights that caches keep while shares read them one after another.
constexpr std::size_t kManyBytes = std::size_t(8) << 20;

// Lane by lane.
Floats larger_of_panel(const Floats* value) {
  return larger(larger(value[0], value[1]), larger(value[2], value[3]));
}

// Σ e^(value - peak) over a panel.
float sum_of_powers(const Floats* value, float peak) {
  Floats sum = zeros();
  for (int v = 0; v < kVectors; ++v) {
    sum = add(sum, exponential(sub(value[v], all(peak))));
  }
  return sum_of(sum);
}

// Takes the tokens of a panel that may be among the best.
void rank(const Floats* value, int panel, int num_tokens, const std::uint8_t* is_suppressed,
          Ranking& ranked) {
  alignas(64) float logits[kPanel];
  for (int v = 0; v < kVectors; ++v) store(logits + v * kLanes, value[v]);
  // What only equals the last place is looked at, too, though it cannot get in: a thread's panels
  // come in their order, so it is a larger token. That rule is `insert`'s alone.
  for (int v = 0; v < kVectors; ++v) {
    const Floats last = all(ranked.logits[ranked.size - 1]);
    unsigned above = at_least(value[v], last);
    for (; above != 0; above &= above - 1) {
      const int column = v * kLanes + __builtin_ctz(above);
      const int token = panel * kPanel + column;
      if (token < num_tokens && !is_suppressed[token]) ranked.insert(logits[column], token);
    }
  }
}

// The rows of every list times its outputs; a task has some panels of a list.
template <class Sink>
void multiply_lists(const Share& share, const ListedStep& step, const QuantisedRows& rows,
                    Sink&& sink) {
  constexpr int kPanelsOfTask = 4;
  struct Task {
    const ListedRows* listed;
    int panel;
  };
  std::vector<Task> tasks;
  for (const ListedRows& listed : step.lists) {
    const int num_panels = listed.list->num_panels();
    for (int i = 0; i < num_panels; i += kPanelsOfTask) tasks.push_back({&listed, i});
  }
  share.run(static_cast<int>(tasks.size()), [&](int index, int thread) {
    const auto& [listed, first] = tasks[index];
    const List& list = *listed->list;
    const auto on_thread = [&](const auto& block) { sink(block, thread); };
    for (int panel = first; panel < std::min(first + kPanelsOfTask, list.num_panels()); ++panel) {
      multiply_listed_rows(list, panel, step.row_bytes, rows, listed->begin, listed->end, on_thread);
    }
  });
}

// From places in a list to its tokens; what holds no token stays token 0.
void name_tokens(const ListedRows& listed, int num_candidates, const float* log_probs,
                 std::int64_t* tokens) {
  for (int i = listed.begin * num_candidates; i < listed.end * num_candidates; ++i) {
    tokens[i] = log_probs[i] > kImpossible ? listed.list->tokens[tokens[i]] : 0;
  }
}

}  // namespace

Ranking OutputLayer::ranking(int thread, int row) {
  const int size = wanted_.num_candidates;
  const std::size_t begin = (std::size_t(thread) * wanted_.num_rows + row) * size;
  return {logits_.data() + begin, tokens_.data() + begin, size};
}

void OutputLayer::begin(const Wanted& wanted) {
  wanted_ = wanted;
  const std::size_t num_places = std::size_t(wanted.num_rows) * network_.output->num_panels();
  const std::size_t num_ranked =
      std::size_t(team_.size()) * wanted.num_rows * wanted.num_candidates;
  peaks_.reserve(num_places);
  sums_.reserve(num_places);
  logits_.reserve(num_ranked);
  tokens_.reserve(num_ranked);
  std::fill_n(logits_.data(), num_ranked, kImpossible);
  std::fill_n(tokens_.data(), num_ranked, 0);
}

bool OutputLayer::is_for_shares() const {
  const Matrix& matrix = *network_.output;
  return wanted_.listed == nullptr &&
         std::size_t(matrix.num_outputs()) * matrix.num_inputs() <= kManyBytes;
}

void OutputLayer::best(const Share& share, const QuantisedRows& rows) {
  const Matrix& matrix = *network_.output;
  const int num_panels = matrix.num_panels();

  // Step by step for all rows of a block: a row alone would wait for each of its reductions.
  const auto sink = [&](const auto& block, int thread) {
    constexpr int kRows = std::remove_reference_t<decltype(block)>::kRows;
    Floats value[kRows][kVectors];
    float peak[kRows];
    for (int r = 0; r < kRows; ++r) {
      block.outputs(r, value[r]);
      peak[r] = largest_of(larger_of_panel(value[r]));
    }
    for (int r = 0; r < kRows; ++r) {
      const std::size_t place = std::size_t(block.begin + r) * num_panels + block.panel;
      peaks_[place] = peak[r];
      sums_[place] = sum_of_powers(value[r], peak[r]);
    }
    for (int r = 0; r < kRows; ++r) {
      const int row = block.begin + r;
      Ranking ranked = ranking(thread, row);
      if (peak[r] >= ranked.logits[ranked.size - 1]) {
        rank(value[r], block.panel, block.num_outputs(),
             wanted_.masks ? wanted_.masks[row] : network_.is_suppressed.data(), ranked);
      }
    }
  };
  if (wanted_.listed == nullptr) {
    multiply_in_blocks(share, matrix, rows, sink);
    share.for_rows([&](int row) { merge(row, num_panels); });
    return;
  }
  multiply_lists(share, *wanted_.listed, rows, sink);
  for (const ListedRows& listed : wanted_.listed->lists) {
    for (int row = listed.begin; row < listed.end; ++row) merge(row, listed.list->num_panels());
    name_tokens(listed, wanted_.num_candidates, wanted_.log_probs, wanted_.tokens);
  }
}

void OutputLayer::log_probs_of(const QuantisedRows& rows, int row, const List* list,
                               const std::int64_t* tokens, int num, float* log_probs) const {
  const int num_panels = list != nullptr ? list->num_panels() : network_.output->num_panels();
  const float normaliser = log_normaliser(row, num_panels);
  for (int i = 0; i < num; ++i) log_probs[i] = logit(rows, row, tokens[i]) - normaliser;
}

// One product alone: the same exact sum, scaled by the same operations as a panel's.
float OutputLayer::logit(const QuantisedRows& rows, int row, std::int64_t token) const {
  const Matrix& matrix = *network_.output;
  const int panel = static_cast<int>(token / kPanel), column = static_cast<int>(token % kPanel);
  const std::uint8_t* weights = matrix.panel(panel) + std::size_t(column) * 4;
  std::int32_t sum = 0;
  for (int quad = 0; quad < matrix.num_quads(); ++quad) {
    for (int i = 0; i < 4; ++i) {
      sum += (weights[i] - 128) * rows.quantum(row, quad * 4 + i);
    }
    weights += 4 * kPanel;
  }
  const float factor = rows.scale[row] * matrix.scale(panel)[column];
  return std::fma(static_cast<float>(sum), factor, matrix.bias(panel)[column]);
}

// Puts together what the threads have found for a row in so many panels.
void OutputLayer::merge(int row, int num_panels) {
  Ranking all = ranking(0, row);
  for (int thread = 1; thread < team_.size(); ++thread) {
    const Ranking more = ranking(thread, row);
    for (int i = 0; i < more.size && more.logits[i] > kImpossible; ++i) {
      all.insert(more.logits[i], more.tokens[i]);
    }
  }
  const float normaliser = log_normaliser(row, num_panels);
  const std::size_t first = std::size_t(row) * all.size;
  for (int i = 0; i < all.size; ++i) {
    wanted_.log_probs[first + i] = all.logits[i] - normaliser;
    wanted_.tokens[first + i] = all.tokens[i];
  }
}

// Panels are summed in their order, whoever made them.
float OutputLayer::log_normaliser(int row, int num_panels) const {
  const std::size_t first = std::size_t(row) * network_.output->num_panels();
  const float* peaks = peaks_.data() + first;
  const float* sums = sums_.data() + first;
  const float peak = *std::max_element(peaks, peaks + num_panels);
  Doubles sum = zero_doubles();
  for (int i = 0; i < num_panels; i += kLanes) {
    const int num = num_panels - i;
    const Floats shifted = sub(load_first(peaks + i, num), all(peak));
    sum = add_floats(sum, keep_first(mul(exponential(shifted), load_first(sums + i, num)), num));
  }
  return static_cast<float>(peak + std::log(sum_of(sum)));
}

}  // namespace dragoman
