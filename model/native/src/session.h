// Running sentences: their sources, their searches, and one decoder step for all of them.
//
// What a row keeps of its own past is the history's and the cell's.
#pragma once

#include <map>

#include "cell.h"
#include "encoder.h"
#include "output.h"

namespace dragoman {

class Session : public AnySession, private Pasts {
 public:
  // With a shortlist every sentence that is admitted chooses from its own list.
  Session(std::shared_ptr<Network> network, std::shared_ptr<Team> team, Limits limits,
          SpecialTokens tokens, std::shared_ptr<Shortlist> shortlist);

  void admit(const std::vector<Request>& requests) override;
  std::vector<Finished> step() override;
  void release(std::int64_t name) override;
  std::vector<std::int32_t> written(std::int64_t name) const override;
  void encode(const std::int32_t* ids, const std::int32_t* lengths, const std::int32_t* slots,
              int num_sentences) override;
  void feed(const StepRow* rows, int num_rows, int num_candidates,
            const std::uint8_t* const* masks, const ListedStep* listed,
            float* log_probs, std::int64_t* tokens, std::int64_t* attended) override;

  // … how much row number `row` of a `feed` with `attended` attended to each source position, on
  // the average of heads; there is none in a network without layers.
  const float* weights(int row) const override {
    return num_layers_ > 0 ? weights_.row(row) : nullptr;
  }

  void log_probs_of(int row, const std::int64_t* tokens, int num,
                    float* log_probs) const override {
    output_.log_probs_of(stack_.input, row, nullptr, tokens, num, log_probs);
  }

  const StepSeconds& seconds() const override { return seconds_; }

 private:
  static constexpr int kGroupRows = 4;
  struct Group {  // rows of one slot, which read its source together
    int slot;
    int num_rows;
    int rows[kGroupRows];
  };

  void copy(int from, int to, int length) override;
  Trail trail(int row, int begin, int end, bool with_sources) const override;
  int lay_out_step();
  void list(const std::vector<Request>& requests);
  std::vector<std::uint8_t> mask_of(const Request& request) const;
  const std::uint8_t* const* lay_out_masks();
  const std::uint8_t* without_repeats(const Search& search, const Search::Beam& beam, int slot,
                                      const std::vector<std::uint8_t>& mask);
  std::size_t place_of(std::int64_t token, int slot) const;
  const ListedStep* lay_out_lists();
  const float* find_wanted(const Search& search, int slot, std::size_t first_row,
                           std::size_t end_row);
  Sentence source(int slot, int layer) const;
  std::size_t scratch_stride() const;
  void lay_out_shares(const StepRow* rows, int num_rows);
  void group(const StepRow* rows, int begin, int end);
  void run_layers(const StepRow* rows, const Share& share, int number, bool with_weights,
                  StepSeconds& seconds);
  void embed(const StepRow* rows, const Share& share);
  void attend_to_sources(const Share& share, int number, int layer, bool with_weights);
  void find_most_attended(const StepRow* rows, int num_rows, std::int64_t* attended);

  std::shared_ptr<Network> network_;
  std::shared_ptr<Team> team_;
  Limits limits_;
  int num_layers_;
  std::size_t source_keys_size_, source_values_size_;
  Stack stack_;
  Encoder encoder_;
  OutputLayer output_;
  History history_;
  std::unique_ptr<Cell> cell_;
  LazyArray<half> source_keys_, source_values_;
  std::vector<int> source_lengths_;  // by slot
  std::vector<int> cuts_;                   // of a step's rows into shares
  std::vector<StepSeconds> share_seconds_;  // of every share
  std::vector<Group> groups_;
  std::vector<int> first_group_;  // of every share, and the end of the last one
  std::vector<int> open_group_;  // by slot: its group that is not full
  FloatRows weights_;
  Buffer<float> scratch_;
  StepSeconds seconds_;

  struct Running {
    int slot;
    Search search;
    std::vector<std::uint8_t> mask;  // by target token: what it may not choose; empty: the network's
  };
  SpecialTokens tokens_;
  std::shared_ptr<Shortlist> shortlist_;  // null: every sentence chooses from all tokens
  std::vector<List> lists_;               // by slot
  std::map<std::int64_t, Running> running_;  // by name, so in the order of admission
  std::vector<StepRow> step_rows_;
  std::vector<const std::uint8_t*> step_masks_;
  std::vector<std::vector<std::uint8_t>> step_repeats_;  // masks of rows that may not repeat themselves
  ListedStep step_lists_;
  std::vector<std::int64_t> step_tokens_, step_attended_;
  std::vector<float> step_log_probs_;
  std::vector<float> wanted_;  // of a sentence's rows, by row and word
};

}  // namespace dragoman
