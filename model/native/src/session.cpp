#include "session.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "repeats.h"

namespace dragoman {
namespace {

// Measured: with fewer rows a thread waits longer for weights than for the others.
constexpr ShareSize kRowsOfShare{16, 32};

// Adds the seconds since the last call, or since its making, to what it is given.
class Stopwatch {
 public:
  void add_to(double& seconds) {
    const auto now = std::chrono::steady_clock::now();
    seconds += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Adds the seconds in which shares were worked on side by side to the parts of a step, divided as the
// shares' own times are.
void add_divided(const std::vector<StepSeconds>& shares, double seconds, StepSeconds& sum) {
  constexpr double StepSeconds::* kParts[] = {&StepSeconds::embedding, &StepSeconds::self_attention,
                                              &StepSeconds::cross_attention,
                                              &StepSeconds::feed_forward, &StepSeconds::output};
  double all = 0;
  for (const StepSeconds& share : shares) {
    for (const auto part : kParts) all += share.*part;
  }
  if (all == 0) return;
  for (const StepSeconds& share : shares) {
    for (const auto part : kParts) sum.*part += share.*part / all * seconds;
  }
}

}  // namespace

Session::Session(std::shared_ptr<Network> network, std::shared_ptr<Team> team, Limits limits,
                 SpecialTokens tokens, std::shared_ptr<Shortlist> shortlist)
    : network_(std::move(network)),
      team_(std::move(team)),
      limits_(limits),
      num_layers_(static_cast<int>(network_->decoder.size())),
      source_keys_size_(sentence_keys_size(network_->heads, limits.max_source_length)),
      source_values_size_(sentence_values_size(network_->heads, limits.max_source_length)),
      stack_(*network_, network_->decoder_d_ff),
      encoder_(*network_, *team_),
      output_(*network_, *team_),
      history_(limits.max_rows, limits.max_target_length),
      cell_(make_cell(*network_, *team_, limits, history_, stack_)),
      source_keys_(std::size_t(limits.max_slots) * num_layers_ * source_keys_size_),
      source_values_(std::size_t(limits.max_slots) * num_layers_ * source_values_size_),
      source_lengths_(limits.max_slots, 0),
      open_group_(limits.max_slots, -1),
      tokens_(tokens),
      shortlist_(std::move(shortlist)),
      lists_(shortlist_ ? limits.max_slots : 0) {
  scratch_.reserve(team_->size() * scratch_stride());
}

// A thread's scratch: scores of a group's rows for one head.
std::size_t Session::scratch_stride() const {
  return std::size_t(round_up(limits_.max_source_length, kLanes)) * kGroupRows;
}

Sentence Session::source(int slot, int layer) const {
  const std::size_t index = std::size_t(slot) * num_layers_ + layer;
  return {source_keys_.data() + index * source_keys_size_,
          source_values_.data() + index * source_values_size_, source_lengths_[slot]};
}

void Session::encode(const std::int32_t* ids, const std::int32_t* lengths,
                     const std::int32_t* slots, int num_sentences) {
  team_->begin();
  encoder_.encode(ids, lengths, num_sentences,
                  [&](int layer, int sentence, int position, const float* keys,
                      const float* values) {
                    const std::size_t index = std::size_t(slots[sentence]) * num_layers_ + layer;
                    store_in_sentence(network_->heads, position, keys, values,
                                      source_keys_.data() + index * source_keys_size_,
                                      source_values_.data() + index * source_values_size_);
                  });
  for (int sentence = 0; sentence < num_sentences; ++sentence) {
    source_lengths_[slots[sentence]] = lengths[sentence];
  }
  team_->end();
}

void Session::admit(const std::vector<Request>& requests) {
  std::vector<std::int32_t> ids, lengths, slots;
  for (const Request& request : requests) {
    ids.insert(ids.end(), request.source.begin(), request.source.end());
    lengths.push_back(static_cast<std::int32_t>(request.source.size()));
    slots.push_back(request.slot);
  }
  encode(ids.data(), lengths.data(), slots.data(), static_cast<int>(requests.size()));
  if (shortlist_) list(requests);
  for (const Request& request : requests) {
    running_.insert({request.name,
                     {request.slot,
                      Search(request.settings, tokens_, request.prefix, request.forced,
                             Phrases(request.phrases), request.rows),
                      mask_of(request)}});
  }
}

// Makes the lists of sentences: with EOS, and with what is forced.
void Session::list(const std::vector<Request>& requests) {
  for (const Request& request : requests) {
    std::vector<std::int64_t> also(request.prefix.begin() + 1, request.prefix.end());
    also.insert(also.end(), request.forced.begin(), request.forced.end());
    for (const Alternatives& phrase : request.phrases) {
      for (const Path& path : phrase) also.insert(also.end(), path.begin(), path.end());
    }
    also.push_back(tokens_.eos);
    if (tokens_.forced_first >= 0) also.push_back(tokens_.forced_first);
    List& list = lists_[request.slot];
    shortlist_->choose(request.source, also, list);
    const std::vector<std::uint8_t> mask = mask_of(request);
    const auto& is_suppressed = mask.empty() ? network_->is_suppressed : mask;
    list.is_suppressed.clear();
    for (const std::int32_t token : list.tokens) list.is_suppressed.push_back(is_suppressed[token]);
  }
}

// What a sentence may not choose, the network's own suppressed tokens included.
std::vector<std::uint8_t> Session::mask_of(const Request& request) const {
  std::vector<std::uint8_t> mask;
  if (request.suppressed.empty()) return mask;
  mask = network_->is_suppressed;
  for (const std::int32_t token : request.suppressed) mask[token] = 1;
  return mask;
}

void Session::release(std::int64_t name) {
  const auto found = running_.find(name);
  if (found == running_.end()) return;
  const Search& search = found->second.search;
  for (const Search::Beam& beam : search.beams()) cell_->forget(beam.row, search.position());
  running_.erase(found);
}

std::vector<std::int32_t> Session::written(std::int64_t name) const {
  const auto found = running_.find(name);
  if (found == running_.end()) return {};
  const Search& search = found->second.search;
  return search.written(search.beams().front(), *this);
}

// The rows of all live beams; returns how many candidates the widest search wants.
int Session::lay_out_step() {
  step_rows_.clear();
  int num_candidates = 1;
  for (const auto& [name, running] : running_) {
    const Search& search = running.search;
    const int position = search.position();
    num_candidates = std::max(num_candidates, search.settings().num_candidates);
    for (const Search::Beam& beam : search.beams()) {
      history_.note_fed(beam.row, position, beam.token, beam.log_prob);
      if (beam.score > -std::numeric_limits<double>::infinity()) {
        step_rows_.push_back({beam.token, beam.row, running.slot, position});
      }
    }
  }
  return std::min(num_candidates, network_->output->num_outputs());
}

// The mask of every row of the step; nothing while no sentence has one of its own.
const std::uint8_t* const* Session::lay_out_masks() {
  const auto has_mask = [this](const auto& item) {
    return shortlist_ || !item.second.mask.empty() ||
           item.second.search.settings().no_repeat_ngram > 0;
  };
  if (std::none_of(running_.begin(), running_.end(), has_mask)) return nullptr;
  step_masks_.clear();
  step_repeats_.resize(std::max(step_repeats_.size(), step_rows_.size()));
  for (const auto& [name, running] : running_) {
    const bool may_repeat = running.search.settings().no_repeat_ngram == 0;
    const auto& mask = shortlist_             ? lists_[running.slot].is_suppressed
                       : running.mask.empty() ? network_->is_suppressed
                                              : running.mask;
    for (const Search::Beam& beam : running.search.beams()) {
      if (!(beam.score > -std::numeric_limits<double>::infinity())) continue;
      step_masks_.push_back(
          may_repeat ? mask.data() : without_repeats(running.search, beam, running.slot, mask));
    }
  }
  return step_masks_.data();
}

// The mask of the step's next row, with the tokens by which it would repeat itself.
const std::uint8_t* Session::without_repeats(const Search& search, const Search::Beam& beam, int slot,
                                             const std::vector<std::uint8_t>& mask) {
  std::vector<std::uint8_t>& own = step_repeats_[step_masks_.size()];
  own = mask;
  mark_repeats(search.written(beam, *this), search.settings().no_repeat_ngram,
               [&](std::int32_t token) { own[place_of(token, slot)] = 1; });
  return own.data();
}

// Where a token of a sentence stands in its masks: all that it writes is in its list.
std::size_t Session::place_of(std::int64_t token, int slot) const {
  if (!shortlist_) return static_cast<std::size_t>(token);
  const std::vector<std::int32_t>& tokens = lists_[slot].tokens;
  return std::lower_bound(tokens.begin(), tokens.end(), token) - tokens.begin();
}

// Which rows of the step choose from which list; nothing without a shortlist.
const ListedStep* Session::lay_out_lists() {
  if (!shortlist_) return nullptr;
  std::vector<ListedRows>& lists = step_lists_.lists;
  step_lists_.row_bytes = shortlist_->row_bytes();
  lists.clear();
  for (int row = 0; row < static_cast<int>(step_rows_.size()); ++row) {
    const List* list = &lists_[step_rows_[row].slot];
    if (lists.empty() || lists.back().list != list) lists.push_back({list, row, row});
    lists.back().end = row + 1;
  }
  return &step_lists_;
}

std::vector<Finished> Session::step() {
  const int num = lay_out_step();
  const std::size_t num_rows = step_rows_.size();
  step_log_probs_.resize(num_rows * num);
  step_tokens_.resize(num_rows * num);
  step_attended_.resize(num_rows);
  const bool with_sources = std::any_of(running_.begin(), running_.end(), [](const auto& item) {
    return item.second.search.settings().with_alignment;
  });
  if (num_rows > 0) {
    feed(step_rows_.data(), static_cast<int>(num_rows), num, lay_out_masks(), lay_out_lists(),
         step_log_probs_.data(), step_tokens_.data(),
         with_sources ? step_attended_.data() : nullptr);
  }
  Stopwatch watch;
  for (std::size_t i = 0; with_sources && i < num_rows; ++i) {
    history_.note_attended(step_rows_[i].row, step_rows_[i].position, step_attended_[i]);
  }
  std::vector<Finished> finished;
  std::size_t row = 0;
  for (auto& [name, running] : running_) {
    const std::size_t first_row = row, first = row * num;
    while (row < num_rows && step_rows_[row].slot == running.slot) ++row;
    const float* wanted = find_wanted(running.search, running.slot, first_row, row);
    if (running.search.advance(step_log_probs_.data() + first, step_tokens_.data() + first, num,
                               wanted, *this)) {
      finished.push_back({name, running.search.settings().with_alignment,
                          running.search.take_hypotheses()});
    }
  }
  for (const Finished& sentence : finished) release(sentence.name);
  watch.add_to(seconds_.search);
  return finished;
}

// The log probabilities of a sentence's words for its rows of the step, (rows, words).
const float* Session::find_wanted(const Search& search, int slot, std::size_t first_row,
                                  std::size_t end_row) {
  const Path& words = search.words();
  if (words.empty()) return nullptr;
  wanted_.resize((end_row - first_row) * words.size());
  float* to = wanted_.data();
  for (std::size_t row = first_row; row < end_row; ++row, to += words.size()) {
    output_.log_probs_of(stack_.input, static_cast<int>(row),
                         shortlist_ ? &lists_[slot] : nullptr, words.data(),
                         static_cast<int>(words.size()), to);
    if (search.settings().no_repeat_ngram == 0) continue;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const bool is_repeat = step_masks_[row][place_of(words[i], slot)] != 0;
      if (is_repeat) to[i] = -std::numeric_limits<float>::infinity();
    }
  }
  return wanted_.data();
}

void Session::copy(int from, int to, int length) {
  history_.copy(from, to, length);
  cell_->copy(from, to, length);
}

Trail Session::trail(int row, int begin, int end, bool with_sources) const {
  return history_.trail(row, begin, end, with_sources);
}

void Session::feed(const StepRow* rows, int num_rows, int num_candidates,
                   const std::uint8_t* const* masks, const ListedStep* listed,
                   float* log_probs, std::int64_t* tokens, std::int64_t* attended) {
  team_->begin();
  Stopwatch watch;
  lay_out_shares(rows, num_rows);
  stack_.reserve(num_rows);
  if (attended != nullptr) {
    weights_.reserve(num_rows, limits_.max_source_length);
    std::memset(weights_.row(0), 0, std::size_t(num_rows) * weights_.stride * sizeof(float));
  }
  output_.begin({num_rows, num_candidates, masks, listed, log_probs, tokens});
  for_shares(*team_, cuts_, [&](const Share& share, int number) {
    run_layers(rows, share, number, attended != nullptr, share_seconds_[number]);
  });
  double shares = 0;
  watch.add_to(shares);
  add_divided(share_seconds_, shares, seconds_);
  if (!output_.is_for_shares()) output_.best(Share(*team_, 0, num_rows), stack_.input);
  if (attended != nullptr) find_most_attended(rows, num_rows, attended);
  watch.add_to(seconds_.output);
  team_->end();
}

// Shares and their groups of rows; rows of a sentence stay together, as they read the same source.
void Session::lay_out_shares(const StepRow* rows, int num_rows) {
  cut_into_shares(num_rows, team_->size(), kRowsOfShare,
                  [&](int row) { return rows[row].slot != rows[row - 1].slot; }, cuts_);
  const std::size_t num_shares = cuts_.size() - 1;
  share_seconds_.assign(num_shares, {});
  groups_.clear();
  first_group_.clear();
  for (std::size_t share = 0; share < num_shares; ++share) {
    first_group_.push_back(static_cast<int>(groups_.size()));
    group(rows, cuts_[share], cuts_[share + 1]);
  }
  first_group_.push_back(static_cast<int>(groups_.size()));
}

void Session::group(const StepRow* rows, int begin, int end) {
  for (int row = begin; row < end; ++row) {
    int& open = open_group_[rows[row].slot];
    if (open < 0 || groups_[open].num_rows == kGroupRows) {
      open = static_cast<int>(groups_.size());
      groups_.push_back({rows[row].slot, 0, {}});
    }
    Group& group = groups_[open];
    group.rows[group.num_rows++] = row;
  }
  for (int row = begin; row < end; ++row) open_group_[rows[row].slot] = -1;
}

// From the tokens of a share to the input of the output layer, or through it.
void Session::run_layers(const StepRow* rows, const Share& share, int number, bool with_weights,
                         StepSeconds& seconds) {
  Stopwatch watch;
  embed(rows, share);
  watch.add_to(seconds.embedding);
  for (int index = 0; index < num_layers_; ++index) {
    const DecoderLayer& layer = network_->decoder[index];
    cell_->step(rows, share, index);
    watch.add_to(seconds.self_attention);

    stack_.enter(share, *layer.cross_norm);
    stack_.project(share, *layer.cross_query);
    attend_to_sources(share, number, index, with_weights && index + 1 == num_layers_);
    stack_.add_attended(share, *layer.cross_output);
    stack_.leave(share, *layer.cross_norm);
    watch.add_to(seconds.cross_attention);

    stack_.enter(share, *layer.feed_forward_norm);
    stack_.add_feed_forward(share, *layer.up, *layer.down);
    stack_.leave(share, *layer.feed_forward_norm);
    watch.add_to(seconds.feed_forward);
  }
  if (network_->is_pre_norm) stack_.enter(share, *network_->decoder_norm);
  if (network_->output_factor != 1.0f) stack_.scale_input(share, network_->output_factor);
  if (output_.is_for_shares()) {
    output_.best(share, stack_.input);
    watch.add_to(seconds.output);
  }
}

void Session::embed(const StepRow* rows, const Share& share) {
  share.for_rows([&](int row) {
    const StepRow& fed = rows[row];
    history_.own(fed.row, fed.position);
    stack_.embed(row, *network_->target_table, static_cast<int>(fed.token),
                 network_->target_positions.row(fed.position),
                 network_->decoder_embedding_norm.get());
  });
}

void Session::attend_to_sources(const Share& share, int number, int layer, bool with_weights) {
  const HeadShape& heads = network_->heads;
  const Group* groups = groups_.data() + first_group_[number];
  const int num_groups = first_group_[number + 1] - first_group_[number];
  const auto attend = [&](const Group& group, int head, int thread) {
    const float* queries[kGroupRows];
    float* outputs[kGroupRows];
    float* weights[kGroupRows];
    for (int i = 0; i < group.num_rows; ++i) {
      queries[i] = stack_.projected.row(group.rows[i]);
      outputs[i] = stack_.context.row(group.rows[i]);
      if (with_weights) weights[i] = weights_.row(group.rows[i]);
    }
    attend_to_sentence(heads, head, source(group.slot, layer), queries, group.num_rows, nullptr,
                       scratch_.data() + thread * scratch_stride(), outputs,
                       with_weights ? weights : nullptr, 1.0f / static_cast<float>(heads.num_heads));
  };
  if (with_weights) {  // the heads of a row add up in one place, so one thread has them all
    share.run(num_groups, [&](int group, int thread) {
      for (int head = 0; head < heads.num_heads; ++head) attend(groups[group], head, thread);
    });
  } else {
    share.run(num_groups * heads.num_heads, [&](int task, int thread) {
      attend(groups[task / heads.num_heads], task % heads.num_heads, thread);
    });
  }
  stack_.quantise_context(share);
}

void Session::find_most_attended(const StepRow* rows, int num_rows, std::int64_t* attended) {
  if (num_layers_ == 0) {  // nothing attends to the source
    std::fill_n(attended, num_rows, 0);
    return;
  }
  for (int row = 0; row < num_rows; ++row) {
    const float* weights = weights_.row(row);
    attended[row] = std::max_element(weights, weights + source_lengths_[rows[row].slot]) - weights;
  }
}

}  // namespace dragoman
