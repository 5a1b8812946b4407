// What running rows were fed, and which rows they descend from.
//
// For every position a row names the row in which that position's token was computed. A second
// child of a beam copies this list; what was computed stays where it is.
#pragma once

#include <cstring>

#include "memory.h"
#include "search.h"

namespace dragoman {

class History {
 public:
  History(int max_rows, int max_length) : max_length_(max_length) {
    const std::size_t num_places = std::size_t(max_rows) * max_length;
    ancestors_.reserve(num_places);
    fed_.reserve(num_places);
    fed_log_probs_.reserve(num_places);
    attended_.reserve(num_places);
  }

  // A token is fed to a row; its log probability when it was chosen.
  void note_fed(int row, int position, std::int64_t token, float log_prob) {
    fed_[at(row, position)] = static_cast<std::int32_t>(token);
    fed_log_probs_[at(row, position)] = log_prob;
  }
  // This position of a row is computed by the row itself.
  void own(int row, int position) { ancestors_[at(row, position)] = row; }
  // The source position attended to most when the token after this position was chosen.
  void note_attended(int row, int position, std::int64_t source) {
    attended_[at(row, position)] = static_cast<std::int32_t>(source);
  }

  // The row that computed each position of `row`.
  const std::int32_t* ancestors(int row) const { return ancestors_.data() + at(row, 0); }

  // Lets row `to` descend from row `from` up to `length` positions.
  void copy(int from, int to, int length) {
    std::memcpy(&ancestors_[at(to, 0)], &ancestors_[at(from, 0)],
                std::size_t(length) * sizeof(std::int32_t));
  }

  // What row `row` was fed at positions `begin` … `end - 1`, and what was attended to one earlier.
  Trail trail(int row, int begin, int end, bool with_sources) const {
    Trail trail;
    const std::int32_t* ancestor = ancestors(row);
    for (int position = begin; position < end; ++position) {
      const std::size_t place = at(ancestor[position], position);
      trail.tokens.push_back(fed_[place]);
      trail.log_probs.push_back(fed_log_probs_[place]);
      if (with_sources) {
        trail.sources.push_back(attended_[at(ancestor[position - 1], position - 1)]);
      }
    }
    return trail;
  }

 private:
  std::size_t at(int row, int position) const {
    return std::size_t(row) * max_length_ + position;
  }

  int max_length_;
  Buffer<std::int32_t> ancestors_, fed_, attended_;  // by row and position
  Buffer<float> fed_log_probs_;
};

}  // namespace dragoman
