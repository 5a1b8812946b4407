// Beam search of one sentence: which hypotheses go on, in which rows, and when it is over.
//
// The rules are those of model/decode/scoring.py, model/decode/beam_search.py and, where beams are divided
// into groups, model/decode/choice.py. Children stay in their parent's row; a second child takes a row of
// the group that nobody claims.
#pragma once

#include <cstdint>
#include <vector>

#include "phrases.h"
#include "sampling.h"

namespace dragoman {

enum class StoppingRule { kExact, kFirst, kHeuristic, kBound };

struct SearchSettings {
  int beam_size, num_candidates, num_hypotheses, max_length;
  double length_penalty;
  StoppingRule rule;
  bool with_alignment;
  Sampling sampling;
  int num_groups = 1;
  double diversity_penalty = 0.0;  // of a token, for each hypothesis of an earlier group that chose it
  int no_repeat_ngram = 0;  // so many tokens in a row come in no hypothesis twice; 0: they may

  int group_size() const { return beam_size / num_groups; }
};

// Tokens that search treats apart; -1 is none.
struct SpecialTokens {
  std::int64_t eos;
  std::int64_t forced_first;
};

// What a row has been fed, position by position, across the rows it descends from.
struct Trail {
  std::vector<std::int32_t> tokens, sources;
  std::vector<float> log_probs;
};

struct Hypothesis {
  Trail trail;  // EOS's log probability is the last
  double score;
  bool is_truncated;
  int num_missed;  // phrases that it does not contain
};

// Where the pasts of rows are kept.
class Pasts {
 public:
  virtual ~Pasts() = default;
  // Lets row `to` have the first `length` positions of row `from`.
  virtual void copy(int from, int to, int length) = 0;
  // What row `row` was fed at positions `begin` … `end - 1`, and what was attended to one earlier.
  virtual Trail trail(int row, int begin, int end, bool with_sources) const = 0;
};

class Search {
 public:
  // A running hypothesis: a row, what it is fed next, and its score so far.
  struct Beam {
    int row;
    std::int64_t token;
    float log_prob;  // of that token
    double score;    // minus infinity: there is no hypothesis here
  };

  // `forced` is what is chosen behind the prefix and a forced first token. No hypothesis ends before
  // it has met all `phrases`, or the cap is reached.
  Search(SearchSettings settings, SpecialTokens tokens, const std::vector<std::int64_t>& prefix,
         const std::vector<std::int64_t>& forced, Phrases phrases, const std::vector<int>& rows);

  // The beams to feed, at this position; those without a hypothesis are left out by the caller.
  const std::vector<Beam>& beams() const { return beams_; }
  int position() const { return position_; }
  const SearchSettings& settings() const { return settings_; }
  // What a live beam has written behind the prefix, with the token that it is fed next.
  std::vector<std::int32_t> written(const Beam& beam, const Pasts& pasts) const;
  // The tokens whose log probabilities `advance` wants besides.
  const Path& words() const { return phrases_.words(); }

  // Takes the likeliest next tokens of every live beam, in the order of `beams`, `num` of each,
  // best first, and the log probabilities of `words`, (beams, words); null if there are none.
  // Returns whether the search is over.
  bool advance(const float* log_probs, const std::int64_t* tokens, int num, const float* wanted,
               Pasts& pasts);

  // Best first, at most `num_hypotheses`; none when no score was finite.
  std::vector<Hypothesis> take_hypotheses();

 private:
  struct Candidate {
    double score;
    float log_prob;
    int beam;
    std::int64_t token;
  };

  // Beams that are searched by themselves: those from `first` on. All of them are one group where they
  // are not divided.
  struct Group {
    int first;
    std::vector<Hypothesis> finished;  // the best of them, best first
    bool is_over;                      // it runs on only until the others are
  };

  int num_generated() const { return position_ - (prefix_length_ - 1); }
  bool is_sampled() const { return settings_.sampling.temperature > 0.0; }
  std::int64_t forced_token() const;
  void gather(const float* log_probs, const std::int64_t* tokens, int num);
  void gather_next_to(const Group& group, const float* log_probs, const std::int64_t* tokens,
                      int num);
  void gather_held(const float* log_probs, const std::int64_t* tokens, int num,
                   const float* wanted);
  void take_turns();
  void rank(std::size_t limit);
  void divide(Group& group, Pasts& pasts);
  void finish(const Candidate& candidate, Group& group, const Pasts& pasts);
  void seat(const std::vector<Candidate>& survivors, const Group& group, Pasts& pasts);
  bool is_over(const Group& group, int num_generated) const;
  double threshold(const Group& group) const;
  double bound_length(int num_generated) const;

  SearchSettings settings_;
  SpecialTokens tokens_;
  int prefix_length_;
  std::vector<std::int64_t> forced_;  // by position: the prefix, and what is chosen behind it
  std::vector<Beam> beams_;
  std::vector<Group> groups_;
  std::vector<std::int64_t> chosen_;  // at this step, by the groups before; kept for its memory
  std::vector<Candidate> candidates_, survivors_, movers_;  // kept for their memory
  Phrases phrases_;
  std::vector<PhraseState> states_;  // by beam; none without phrases
  int position_ = 0;
};

}  // namespace dragoman
