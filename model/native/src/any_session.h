// A session as callers see it, whatever instruction set its kernels are compiled for.
//
// Owns what goes in and comes out. Kernels of each instruction set are a library of their own (a
// level), loaded only where the processor has it; what they share with their caller is plain data,
// compiled for every processor.
#pragma once

#include <memory>
#include <vector>

#include "network.h"
#include "phrases.h"
#include "search.h"
#include "shortlist.h"
#include "team.h"

namespace dragoman {

struct ListedStep;  // output.h

struct Limits {
  int max_rows, max_slots, max_source_length, max_target_length;
};

// One row of a step.
struct StepRow {
  std::int64_t token;     // fed now
  std::int32_t row;       // where its state lies
  std::int32_t slot;      // where its source lies
  std::int32_t position;  // of the token
};

// A sentence to search a translation of.
struct Request {
  std::int64_t name;
  int slot;                // where its source will lie
  std::vector<int> rows;   // where its beams will lie
  std::vector<std::int32_t> source;
  std::vector<std::int64_t> prefix;
  std::vector<std::int32_t> suppressed;  // tokens that its search never chooses
  std::vector<std::int64_t> forced;      // what its translation begins with
  std::vector<Alternatives> phrases;     // what its translation contains
  SearchSettings settings;
};

struct Finished {
  std::int64_t name;
  bool with_alignment;
  std::vector<Hypothesis> hypotheses;
};

// Seconds spent in the parts of steps, summed.
struct StepSeconds {
  double embedding = 0, self_attention = 0, cross_attention = 0, feed_forward = 0, output = 0,
         search = 0;
};

class AnySession {
 public:
  virtual ~AnySession() = default;

  // Encodes sentences, which take part in steps from now on.
  virtual void admit(const std::vector<Request>& requests) = 0;

  // Extends every running hypothesis by one token; gives the sentences whose search is over.
  virtual std::vector<Finished> step() = 0;

  // Drops a running sentence.
  virtual void release(std::int64_t name) = 0;

  // The tokens that the first beam of a running sentence has chosen so far, behind the prefix; none
  // of one that is not running.
  virtual std::vector<std::int32_t> written(std::int64_t name) const = 0;

  // The network alone, what a step is made of: encodes sentences, laid end to end, into slots.
  virtual void encode(const std::int32_t* ids, const std::int32_t* lengths,
                      const std::int32_t* slots, int num_sentences) = 0;
  // … and feeds rows a token each. Writes the likeliest next tokens, best first; if `attended` is
  // given, the source position each row attended to most. `masks` and `listed`, if given, are
  // the rows' own.
  virtual void feed(const StepRow* rows, int num_rows, int num_candidates,
                    const std::uint8_t* const* masks, const ListedStep* listed, float* log_probs,
                    std::int64_t* tokens, std::int64_t* attended) = 0;

  // … how much row number `row` of a `feed` with `attended` attended to each source position, on
  // the average of heads; null for a network without layers.
  virtual const float* weights(int row) const = 0;

  // … and the log probabilities of `num` tokens for row number `row` of a `feed` without lists, bit
  // for bit as a search has them.
  virtual void log_probs_of(int row, const std::int64_t* tokens, int num,
                            float* log_probs) const = 0;

  virtual const StepSeconds& seconds() const = 0;
};

// The kernels of one instruction set.
struct Level {
  const char* instruction_set;
  // With a shortlist every sentence that is admitted chooses from its own list. Null where there is no memory
  // for the session's limits: a level may have a C++ library of its own, and what one throws another knows
  // only as an error.
  std::unique_ptr<AnySession> (*open)(std::shared_ptr<Network> network, std::shared_ptr<Team> team,
                                      Limits limits, SpecialTokens tokens,
                                      std::shared_ptr<Shortlist> shortlist);
};

}  // namespace dragoman
