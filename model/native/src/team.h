// A few threads that share the tasks of one loop after another.
//
// A decoder step is some seventy short loops with a barrier after each, so handing out a loop
// must cost well under a microsecond: workers spin for a moment between loops and sleep only when
// nothing has come for a while. Tasks are taken one by one, so a thread that is held up (another
// process wants its core) delays the loop by one task and not by its whole share; and when
// waiting for held-up threads costs more than they bring, the team goes on alone for a while.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace dragoman {

class Team {
 public:
  // Seconds that have passed since some moment: what waiting is measured with.
  using Seconds = std::function<double()>;

  static double steady_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  // Workers look for the next loop for so long before they sleep: longer than the search between two
  // steps, too short for anyone to notice.
  static constexpr std::chrono::microseconds kSpinTime{100};

  explicit Team(int num_threads, Seconds seconds = steady_seconds,
                std::chrono::microseconds spin_time = kSpinTime);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(task, thread) for every task in 0 … num_tasks - 1, each once, on any thread, and
  // returns when all are done. Only one thread may call it, and not from within a body.
  template <class Body>
  void run(int num_tasks, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    if (num_tasks <= 1 || is_alone()) {
      for (int task = 0; task < num_tasks; ++task) body(task, 0);
      return;
    }
    share(num_tasks,
          [](void* context, int task, int thread) { (*static_cast<Plain*>(context))(task, thread); },
          &body);
  }

  // Marks the begin and the end of a piece of work (a step, a batch of sentences to encode):
  // here the team looks at what waiting has cost, and decides whether to go on alone.
  void begin();
  void end();

  // Seconds that the calling thread has waited for others, and steps that were worked on alone.
  double waited_seconds() const { return total_waited_; }
  std::int64_t num_alone() const { return total_alone_; }

 private:
  using Call = void (*)(void* context, int task, int thread);
  struct Job {
    Call call;
    void* context;
  };

  bool is_alone() const { return workers_.empty() || num_alone_ > 0; }
  void share(int num_tasks, Call call, void* context);
  void work(int thread);
  void stop();
  bool take_one(int thread);
  bool sleep_until_next(std::uint32_t seen);
  void wake();

  Seconds seconds_;
  std::chrono::microseconds spin_time_;
  std::vector<std::thread> workers_;

  // The loop's task count and its next task, in one word: a late worker either takes a task of
  // the loop that runs, which cannot end before it has done it, or finds none. So one job is
  // enough, too: who reads it has a task, and it is replaced only when all tasks are done.
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  Job job_ = {};
  alignas(64) std::atomic<int> num_done_{0};
  alignas(64) std::atomic<std::uint32_t> loop_{0};
  // Not std::atomic's own waiting: who waits is kept in a table that every module may have one of, and threads
  // are started by one module and woken by another.
  std::mutex sleep_;
  std::condition_variable awake_;
  std::atomic<int> num_asleep_{0};
  std::atomic<bool> is_over_{false};

  double begun_ = 0.0, waited_ = 0.0, total_waited_ = 0.0;
  std::int64_t total_alone_ = 0;
  int num_slow_ = 0;
  int num_alone_ = 0;
  int next_alone_ = 0;
};

}  // namespace dragoman
