#include "search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace dragoman {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kFree = -1;

}  // namespace

Search::Search(SearchSettings settings, SpecialTokens tokens,
               const std::vector<std::int64_t>& prefix, const std::vector<std::int64_t>& forced,
               Phrases phrases, const std::vector<int>& rows)
    : settings_(settings),
      tokens_(tokens),
      prefix_length_(static_cast<int>(prefix.size())),
      forced_(prefix),
      phrases_(std::move(phrases)),
      states_(phrases_.empty() ? 0 : rows.size()) {
  if (tokens_.forced_first >= 0) forced_.push_back(tokens_.forced_first);
  forced_.insert(forced_.end(), forced.begin(), forced.end());
  const int group_size = settings_.group_size();
  if (group_size == 1 || is_sampled()) settings_.rule = StoppingRule::kFirst;
  for (const int row : rows) {
    beams_.push_back({row, prefix[0], 0.0f, is_sampled() ? 0.0 : -kInfinity});
  }
  for (int first = 0; first < settings_.beam_size; first += group_size) {
    beams_[first].score = 0.0;
    groups_.push_back({first, {}, false});
  }
}

// The cap costs nothing and ends the hypothesis; nor does anything else cost that is forced.
std::int64_t Search::forced_token() const {
  if (num_generated() == settings_.max_length - 1) return tokens_.eos;
  const std::size_t next = position_ + 1;
  return next < forced_.size() ? forced_[next] : kFree;
}

std::vector<std::int32_t> Search::written(const Beam& beam, const Pasts& pasts) const {
  if (position_ < prefix_length_) return {};
  std::vector<std::int32_t> tokens =
      pasts.trail(beam.row, prefix_length_, position_, false).tokens;
  tokens.push_back(static_cast<std::int32_t>(beam.token));
  return tokens;
}

void Search::gather(const float* log_probs, const std::int64_t* tokens, int num) {
  const std::int64_t forced = forced_token();
  candidates_.clear();
  for (int beam = 0; beam < settings_.beam_size; ++beam) {
    const double score = beams_[beam].score;
    if (!(score > -kInfinity)) continue;
    int first = 0, last = num;
    if (is_sampled()) {
      first = sample(settings_.sampling, {beam, num_generated()}, log_probs, tokens, num);
      last = first + 1;
    }
    if (forced != kFree) {
      candidates_.push_back({score, 0.0f, beam, forced});
    } else {
      for (int i = first; i < last; ++i) {
        const double sum = score + log_probs[i];
        if (sum > -kInfinity) candidates_.push_back({sum, log_probs[i], beam, tokens[i]});
      }
    }
    log_probs += num;
    tokens += num;
  }
  rank(settings_.num_candidates);
}

// As `gather` for one group of several: what the groups before it have chosen costs it in the choice,
// but not in the sum. Other rows' numbers stand before its own.
void Search::gather_next_to(const Group& group, const float* log_probs, const std::int64_t* tokens,
                            int num) {
  const std::int64_t forced = forced_token();
  candidates_.clear();
  for (int beam = group.first; beam < group.first + settings_.group_size(); ++beam) {
    const double score = beams_[beam].score;
    if (!(score > -kInfinity)) continue;
    for (int i = 0; i < (forced == kFree ? num : 0); ++i) {
      const double times = std::count(chosen_.begin(), chosen_.end(), tokens[i]);
      const double sum = score + log_probs[i];
      const double value = sum - times * settings_.diversity_penalty;
      if (sum > -kInfinity) candidates_.push_back({value, log_probs[i], beam, tokens[i]});
    }
    if (forced != kFree) candidates_.push_back({score, 0.0f, beam, forced});
    log_probs += num;
    tokens += num;
  }
  rank(settings_.num_candidates / settings_.num_groups);
  for (Candidate& candidate : candidates_) {
    candidate.score = beams_[candidate.beam].score + candidate.log_prob;
  }
}

// The best `limit` candidates, best first.
void Search::rank(std::size_t limit) {
  const auto is_better = [](const Candidate& a, const Candidate& b) {
    return std::make_tuple(-a.score, a.beam, a.token) < std::make_tuple(-b.score, b.beam, b.token);
  };
  limit = std::min(candidates_.size(), limit);
  std::partial_sort(candidates_.begin(), candidates_.begin() + limit, candidates_.end(), is_better);
  candidates_.resize(limit);
}

// As `gather` where there are phrases and nothing is forced: of every beam its best tokens and those
// that a phrase wants, but no EOS before all phrases are met.
void Search::gather_held(const float* log_probs, const std::int64_t* tokens, int num,
                         const float* wanted) {
  const Path& words = phrases_.words();
  const int num_best = std::min(num, settings_.num_candidates);
  candidates_.clear();
  for (int beam = 0; beam < settings_.beam_size; ++beam) {
    const double score = beams_[beam].score;
    if (!(score > -kInfinity)) continue;
    const PhraseState state = states_[beam];
    const auto add = [&](float log_prob, std::int64_t token) {
      const double sum = score + log_prob;
      if (sum > -kInfinity) candidates_.push_back({sum, log_prob, beam, token});
    };
    for (int i = 0; i < num_best; ++i) {
      if (tokens[i] != tokens_.eos || phrases_.is_full(state)) add(log_probs[i], tokens[i]);
    }
    for (std::size_t i = 0; i < words.size(); ++i) {
      const PhraseState next = phrases_.after(state, words[i]);
      const bool is_wanted = next.met != state.met || phrases_.is_begun(next);
      const bool is_known = std::find(tokens, tokens + num_best, words[i]) != tokens + num_best;
      if (is_wanted && !is_known) add(wanted[i], words[i]);
    }
    log_probs += num;
    tokens += num;
    wanted += words.size();
  }
  rank(candidates_.size());
  take_turns();
}

// From candidates by score to the best of each bank, then the second of each, and so on; the bank
// that has come furthest goes first.
void Search::take_turns() {
  struct Turn {
    int rank, bank;
    Candidate candidate;
  };
  std::vector<Turn> turns;
  int num_before[2 * Phrases::kMaxTokens] = {};
  for (const Candidate& candidate : candidates_) {
    const int bank = phrases_.bank(phrases_.after(states_[candidate.beam], candidate.token));
    turns.push_back({num_before[bank]++, bank, candidate});
  }
  std::sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) {
    return std::make_tuple(a.rank, -a.bank) < std::make_tuple(b.rank, -b.bank);
  });
  turns.resize(std::min(turns.size(), std::size_t(settings_.num_candidates)));
  candidates_.clear();
  for (const Turn& turn : turns) candidates_.push_back(turn.candidate);
}

bool Search::advance(const float* log_probs, const std::int64_t* tokens, int num,
                     const float* wanted, Pasts& pasts) {
  if (settings_.num_groups == 1) {
    if (phrases_.empty() || forced_token() != kFree) {
      gather(log_probs, tokens, num);
    } else {
      gather_held(log_probs, tokens, num, wanted);
    }
    divide(groups_[0], pasts);
  } else {
    chosen_.clear();
    for (Group& group : groups_) {
      const auto begin = beams_.begin() + group.first, end = begin + settings_.group_size();
      const auto num_rows = std::count_if(
          begin, end, [](const Beam& beam) { return beam.score > -kInfinity; });
      gather_next_to(group, log_probs, tokens, num);
      divide(group, pasts);
      for (const Candidate& survivor : survivors_) chosen_.push_back(survivor.token);
      log_probs += num_rows * num;
      tokens += num_rows * num;
    }
  }
  ++position_;
  return std::all_of(groups_.begin(), groups_.end(), [](const Group& group) { return group.is_over; });
}

// Candidates into those that end, those that go on, and those that are dropped.
void Search::divide(Group& group, Pasts& pasts) {
  const std::size_t group_size = settings_.group_size();
  survivors_.clear();
  for (std::size_t rank = 0; rank < candidates_.size(); ++rank) {
    const Candidate& candidate = candidates_[rank];
    const bool is_end = candidate.token == tokens_.eos && num_generated() >= 0;
    if (is_end) {
      if (rank < group_size && !group.is_over) finish(candidate, group, pasts);
    } else if (survivors_.size() < group_size) {
      survivors_.push_back(candidate);
    }
  }
  if (!phrases_.empty() || settings_.num_groups > 1) {
    std::stable_sort(survivors_.begin(), survivors_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  }
  seat(survivors_, group, pasts);
  if (is_over(group, num_generated() + 1)) group.is_over = true;
}

// Whether what survives of a group, with so many tokens, cannot matter any more.
bool Search::is_over(const Group& group, int num_generated) const {
  if (num_generated < 1) return false;
  const double best = survivors_.empty() ? -kInfinity : survivors_[0].score;
  const double length = bound_length(num_generated);
  return best / std::pow(length, settings_.length_penalty) <= threshold(group);
}

void Search::finish(const Candidate& candidate, Group& group, const Pasts& pasts) {
  std::vector<Hypothesis>& finished = group.finished;
  const int length = num_generated() + 1;
  const double score = candidate.score / std::pow(length, settings_.length_penalty);
  const std::size_t limit = settings_.group_size();
  const int num_missed =
      phrases_.empty() ? 0 : phrases_.num_missed(states_[candidate.beam]);
  const auto is_behind = [&](const Hypothesis& other) {
    if (num_missed != other.num_missed) return num_missed > other.num_missed;
    return !(score > other.score);
  };
  // What is not better would be put in behind the last and dropped at once: this saves its trail.
  if (finished.size() == limit && is_behind(finished.back())) return;
  const int begin = prefix_length_;
  Hypothesis hypothesis{pasts.trail(beams_[candidate.beam].row, begin, position_ + 1,
                                    settings_.with_alignment),
                        score, length == settings_.max_length, num_missed};
  hypothesis.trail.log_probs.push_back(candidate.log_prob);
  const auto place = std::partition_point(finished.begin(), finished.end(), is_behind);
  finished.insert(place, std::move(hypothesis));
  if (finished.size() > limit) finished.pop_back();
}

// Gives every survivor a row. The first child of a beam stays; the others take the places that
// nobody stays in, and copy the past they continue.
void Search::seat(const std::vector<Candidate>& survivors, const Group& group, Pasts& pasts) {
  // No token of the prefix is in a phrase.
  const std::vector<PhraseState> before = num_generated() < 0 ? std::vector<PhraseState>{} : states_;
  const auto sit = [&](std::size_t place, const Candidate& candidate) {
    beams_[place].token = candidate.token;
    beams_[place].log_prob = candidate.log_prob;
    beams_[place].score = candidate.score;
    if (!before.empty()) states_[place] = phrases_.after(before[candidate.beam], candidate.token);
  };
  for (int i = 0; i < settings_.group_size(); ++i) beams_[group.first + i].score = -kInfinity;
  movers_.clear();
  for (const Candidate& candidate : survivors) {
    if (beams_[candidate.beam].score > -kInfinity) {
      movers_.push_back(candidate);
    } else {
      sit(candidate.beam, candidate);
    }
  }
  std::size_t place = group.first;
  for (const Candidate& mover : movers_) {
    while (beams_[place].score > -kInfinity) ++place;
    pasts.copy(beams_[mover.beam].row, beams_[place].row, position_ + 1);
    sit(place, mover);
  }
}

// What running hypotheses have to pass for the search to go on.
double Search::threshold(const Group& group) const {
  const bool is_exact = settings_.rule == StoppingRule::kExact;
  const int num_groups = settings_.num_groups;
  const std::size_t required = is_exact ? (settings_.num_hypotheses + num_groups - 1) / num_groups
                                        : settings_.group_size();
  if (group.finished.size() < required) return -kInfinity;
  return settings_.rule == StoppingRule::kFirst ? kInfinity : group.finished[required - 1].score;
}

// The length at which a running hypothesis is judged.
double Search::bound_length(int num_generated) const {
  const bool is_exact = settings_.rule == StoppingRule::kExact;
  const bool looks_ahead = is_exact || settings_.rule == StoppingRule::kBound;
  if (looks_ahead && settings_.length_penalty > 0) return settings_.max_length;
  return is_exact ? num_generated + 1 : num_generated;
}

// In turn the best of each group, the best of these first, and none twice.
std::vector<Hypothesis> Search::take_hypotheses() {
  const std::size_t limit = settings_.num_hypotheses;
  std::vector<Hypothesis> taken;
  for (int rank = 0; rank < settings_.group_size(); ++rank) {
    std::vector<Hypothesis*> turn;
    for (Group& group : groups_) {
      if (rank < static_cast<int>(group.finished.size())) turn.push_back(&group.finished[rank]);
    }
    std::stable_sort(turn.begin(), turn.end(),
                     [](const Hypothesis* a, const Hypothesis* b) { return a->score > b->score; });
    for (Hypothesis* one : turn) {
      const auto is_same = [&](const Hypothesis& other) {
        return groups_.size() > 1 && other.trail.tokens == one->trail.tokens;
      };
      if (taken.size() < limit && std::none_of(taken.begin(), taken.end(), is_same)) {
        taken.push_back(std::move(*one));
      }
    }
  }
  return taken;
}

}  // namespace dragoman
