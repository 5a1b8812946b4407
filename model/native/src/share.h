// Rows that go through layers together, and who works on them.
//
// Few rows are one share that the whole team works on: it splits every product by outputs, and its
// threads meet after each of the seventy loops of a step. Many rows are several shares, each of which
// one thread takes through all layers by itself: weights are read once a share, rows stay in the caches
// of their thread, and threads meet once a step. Rows do not know of each other, so a result is the same
// bits either way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "team.h"

namespace dragoman {

class Share {
 public:
  // Rows `begin` to `end` for all threads of a team.
  Share(Team& team, int begin, int end) : team_(&team), begin_(begin), end_(end) {}
  // … for one of its threads, which runs a task of the team.
  Share(int thread, int begin, int end) : thread_(thread), begin_(begin), end_(end) {}

  int begin() const { return begin_; }
  int end() const { return end_; }
  int num_rows() const { return end_ - begin_; }
  // The thread that works on it: the calling one, which is the first, where all do.
  int thread() const { return thread_; }
  int num_threads() const { return team_ != nullptr ? team_->size() : 1; }
  // As many rows, numbered anew.
  Share from_zero() const {
    Share share = *this;
    share.begin_ = 0;
    share.end_ = num_rows();
    return share;
  }

  // Calls body(task, thread) for every task in 0 … num_tasks - 1, and returns when all are done.
  template <class Body>
  void run(int num_tasks, Body&& body) const {
    if (team_ != nullptr) return team_->run(num_tasks, body);
    for (int task = 0; task < num_tasks; ++task) body(task, thread_);
  }

  // Calls body(row) for every row, a few rows a task.
  template <class Body>
  void for_rows(Body&& body) const {
    constexpr int kRows = 4;
    run((num_rows() + kRows - 1) / kRows, [&](int task, int) {
      const int first = begin_ + task * kRows;
      for (int row = first; row < std::min(first + kRows, end_); ++row) body(row);
    });
  }

 private:
  Team* team_ = nullptr;
  int thread_ = 0;
  int begin_, end_;
};

// How many rows make a share of a thread's own: no fewer than `least`, else all threads work on all rows; and
// about `usual` where there are more. More shares than threads let the others go on while one is held up.
struct ShareSize {
  int least, usual;
};

// Where rows are cut into shares: 0, the cuts, the number of rows. Rows are cut where may_cut(row) says
// that row `row` may be the first of a share.
template <class MayCut>
void cut_into_shares(int num_rows, int num_threads, ShareSize size, MayCut&& may_cut,
                     std::vector<int>& cuts) {
  cuts.assign(1, 0);
  if (num_rows >= num_threads * size.least) {
    const int num_shares = std::max(num_rows / size.usual / num_threads, 1) * num_threads;
    for (int share = 1; share < num_shares; ++share) {
      int cut = static_cast<int>(std::int64_t(num_rows) * share / num_shares);
      while (cut < num_rows && !may_cut(cut)) ++cut;
      if (cut > cuts.back() && cut < num_rows) cuts.push_back(cut);
    }
  }
  cuts.push_back(num_rows);
}

// Calls body(share, number) for every share between these cuts: one share for the whole team, or
// each of several for a thread.
template <class Body>
void for_shares(Team& team, const std::vector<int>& cuts, Body&& body) {
  if (cuts.size() == 2) return body(Share(team, cuts[0], cuts[1]), 0);
  team.run(static_cast<int>(cuts.size()) - 1, [&](int number, int thread) {
    body(Share(thread, cuts[number], cuts[number + 1]), number);
  });
}

}  // namespace dragoman
