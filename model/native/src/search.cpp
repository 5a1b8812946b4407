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
  if (settings_.beam_size == 1 || is_sampled()) settings_.rule = StoppingRule::kFirst;
  for (const int row : rows) {
    beams_.push_back({row, prefix[0], 0.0f, is_sampled() ? 0.0 : -kInfinity});
  }
  beams_[0].score = 0.0;
}

// The cap costs nothing and ends the hypothesis; nor does anything else cost that is forced.
std::int64_t Search::forced_token() const {
  if (num_generated() == settings_.max_length - 1) return tokens_.eos;
  const std::size_t next = position_ + 1;
  return next < forced_.size() ? forced_[next] : kFree;
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
  if (phrases_.empty() || forced_token() != kFree) {
    gather(log_probs, tokens, num);
  } else {
    gather_held(log_probs, tokens, num, wanted);
  }
  const std::size_t beam_size = settings_.beam_size;
  survivors_.clear();
  for (std::size_t rank = 0; rank < candidates_.size(); ++rank) {
    const Candidate& candidate = candidates_[rank];
    const bool is_end = candidate.token == tokens_.eos && num_generated() >= 0;
    if (is_end) {
      if (rank < beam_size) finish(candidate, pasts);
    } else if (survivors_.size() < beam_size) {
      survivors_.push_back(candidate);
    }
  }
  if (!phrases_.empty()) {
    std::stable_sort(survivors_.begin(), survivors_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  }
  seat(survivors_, pasts);
  ++position_;
  if (num_generated() < 1) return false;
  const double best = survivors_.empty() ? -kInfinity : survivors_[0].score;
  return best / std::pow(bound_length(num_generated()), settings_.length_penalty) <= threshold();
}

void Search::finish(const Candidate& candidate, const Pasts& pasts) {
  const int length = num_generated() + 1;
  const double score = candidate.score / std::pow(length, settings_.length_penalty);
  const std::size_t limit = settings_.beam_size;
  const int num_missed =
      phrases_.empty() ? 0 : phrases_.num_missed(states_[candidate.beam]);
  const auto is_behind = [&](const Hypothesis& other) {
    if (num_missed != other.num_missed) return num_missed > other.num_missed;
    return !(score > other.score);
  };
  // What is not better would be put in behind the last and dropped at once: this saves its trail.
  if (finished_.size() == limit && is_behind(finished_.back())) return;
  const int begin = prefix_length_;
  Hypothesis hypothesis{pasts.trail(beams_[candidate.beam].row, begin, position_ + 1,
                                    settings_.with_alignment),
                        score, length == settings_.max_length, num_missed};
  hypothesis.trail.log_probs.push_back(candidate.log_prob);
  const auto place = std::partition_point(finished_.begin(), finished_.end(), is_behind);
  finished_.insert(place, std::move(hypothesis));
  if (finished_.size() > limit) finished_.pop_back();
}

// Gives every survivor a row. The first child of a beam stays; the others take the places that
// nobody stays in, and copy the past they continue.
void Search::seat(const std::vector<Candidate>& survivors, Pasts& pasts) {
  // No token of the prefix is in a phrase.
  const std::vector<PhraseState> before = num_generated() < 0 ? std::vector<PhraseState>{} : states_;
  const auto sit = [&](std::size_t place, const Candidate& candidate) {
    beams_[place].token = candidate.token;
    beams_[place].log_prob = candidate.log_prob;
    beams_[place].score = candidate.score;
    if (!before.empty()) states_[place] = phrases_.after(before[candidate.beam], candidate.token);
  };
  for (Beam& beam : beams_) beam.score = -kInfinity;
  movers_.clear();
  for (const Candidate& candidate : survivors) {
    if (beams_[candidate.beam].score > -kInfinity) {
      movers_.push_back(candidate);
    } else {
      sit(candidate.beam, candidate);
    }
  }
  std::size_t place = 0;
  for (const Candidate& mover : movers_) {
    while (beams_[place].score > -kInfinity) ++place;
    pasts.copy(beams_[mover.beam].row, beams_[place].row, position_ + 1);
    sit(place, mover);
  }
}

// What running hypotheses have to pass for the search to go on.
double Search::threshold() const {
  const bool is_exact = settings_.rule == StoppingRule::kExact;
  const std::size_t required = is_exact ? settings_.num_hypotheses : settings_.beam_size;
  if (finished_.size() < required) return -kInfinity;
  return settings_.rule == StoppingRule::kFirst ? kInfinity : finished_[required - 1].score;
}

// The length at which a running hypothesis is judged.
double Search::bound_length(int num_generated) const {
  const bool is_exact = settings_.rule == StoppingRule::kExact;
  const bool looks_ahead = is_exact || settings_.rule == StoppingRule::kBound;
  if (looks_ahead && settings_.length_penalty > 0) return settings_.max_length;
  return is_exact ? num_generated + 1 : num_generated;
}

std::vector<Hypothesis> Search::take_hypotheses() {
  const std::size_t limit = settings_.num_hypotheses;
  if (finished_.size() > limit) finished_.resize(limit);
  return std::move(finished_);
}

}  // namespace dragoman
