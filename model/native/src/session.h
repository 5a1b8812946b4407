// Running sentences: their caches, and one decoder step for all of them.
//
// A row keeps the keys and values of the tokens it was fed, and for every position the row in
// which that position's token was computed. A second child of a beam copies this list and
// nothing else.
#pragma once

#include "encoder.h"
#include "output.h"

namespace dragoman {

struct Limits {
  int max_rows, max_slots, max_source_length, max_target_length;
};

// One row of a step.
struct StepRow {
  std::int64_t token;     // fed now
  std::int32_t row;       // where its past lies
  std::int32_t slot;      // where its memory lies
  std::int32_t position;  // of the token
};

// Seconds spent in the parts of steps, summed.
struct StepSeconds {
  double embedding = 0, self_attention = 0, cross_attention = 0, feed_forward = 0, output = 0;
};

class Session {
 public:
  Session(std::shared_ptr<Network> network, std::shared_ptr<Team> team, Limits limits);

  // Encodes sentences, laid end to end, into slots.
  void encode(const std::int32_t* ids, const std::int32_t* lengths, const std::int32_t* slots,
              int num_sentences);

  // Feeds every row its token. Writes the likeliest next tokens, best first; if `looked` is given,
  // the source position each row attended to most.
  void step(const StepRow* rows, int num_rows, int num_candidates, float* log_probs,
            std::int64_t* tokens, std::int64_t* looked);

  // Lets row `to` have the past of row `from`, `length` positions.
  void copy_past(int from, int to, int length);

  // Gives the memory of a past beyond `kKept` positions back.
  void forget_past(int row, int length);

  const StepSeconds& seconds() const { return seconds_; }

 private:
  static constexpr int kGroupRows = 4;
  struct Group {  // rows of one slot, which read its memory together
    int slot;
    int num_rows;
    int rows[kGroupRows];
  };

  half* node(int row, int layer, int position) {
    return past_.data() + ((std::size_t(row) * num_layers_ + layer) * limits_.max_target_length +
                           position) * node_size_;
  }
  std::int32_t* ancestors(int row) {
    return ancestors_.data() + std::size_t(row) * limits_.max_target_length;
  }
  Memory memory(int slot, int layer) const;
  std::size_t scratch_stride() const;
  void group(const StepRow* rows, int num_rows);
  void embed(const StepRow* rows, int num_rows);
  void attend_to_pasts(const StepRow* rows, int num_rows, int layer);
  void attend_to_memories(int num_rows, int layer, bool with_weights);
  void find_most_looked_at(const StepRow* rows, int num_rows, std::int64_t* looked);

  std::shared_ptr<Network> network_;
  std::shared_ptr<Team> team_;
  Limits limits_;
  int num_layers_;
  std::size_t node_size_, memory_keys_size_, memory_values_size_;
  Stack stack_;
  Encoder encoder_;
  OutputLayer output_;
  LazyArray<half> past_, memory_keys_, memory_values_;
  Buffer<std::int32_t> ancestors_;
  std::vector<int> memory_lengths_;  // by slot
  std::vector<Group> groups_;
  std::vector<int> open_group_;  // by slot: its group that is not full
  FloatRows weights_;
  Buffer<float> scratch_;
  Buffer<const half*> nodes_;
  StepSeconds seconds_;
};

}  // namespace dragoman
