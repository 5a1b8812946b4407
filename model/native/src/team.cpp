#include "team.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace dragoman {
namespace {

// A ticket's upper half is the number of tasks, its lower half the next of them. Looks at a used
// up ticket count on: one a thread and loop, which is far from reaching the upper half.
constexpr int kTaskBits = 32;

constexpr int kLooksPerClock = 16;
// After so many looks a waiting thread lets others have its core between two looks.
constexpr int kPolite = 500;

// Waiting for other threads may take this part of a step; two steps in a row above it, and the
// team works alone for `kFirstAlone` steps, twice as many each time it is no better afterwards.
constexpr double kWaitShare = 0.3;
constexpr int kFirstAlone = 32;
constexpr int kLongestAlone = 1024;

// Tells the core that this thread only looks.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Team::Team(int num_threads, Seconds seconds, std::chrono::microseconds spin_time)
    : seconds_(std::move(seconds)), spin_time_(spin_time), next_alone_(kFirstAlone) {
  try {
    for (int thread = 1; thread < num_threads; ++thread) {
      workers_.emplace_back([this, thread] { work(thread); });
    }
  } catch (const std::system_error& error) {
    const std::size_t num_started = workers_.size() + 1;
    stop();
    throw std::runtime_error("only " + std::to_string(num_started) + " of " +
                             std::to_string(num_threads) + " threads can be started: " +
                             error.what());
  }
}

Team::~Team() { stop(); }

void Team::stop() {
  is_over_.store(true);
  loop_.fetch_add(1);
  wake();
  for (std::thread& worker : workers_) worker.join();
}

void Team::begin() {
  begun_ = seconds_();
  waited_ = 0.0;
}

void Team::end() {
  if (workers_.empty()) return;
  if (num_alone_ > 0) {
    --num_alone_;
    ++total_alone_;
    return;
  }
  total_waited_ += waited_;
  const bool is_slow = waited_ > kWaitShare * (seconds_() - begun_);
  num_slow_ = is_slow ? num_slow_ + 1 : 0;
  if (num_slow_ >= 2) {
    num_slow_ = 1;  // one more slow step after the pause is enough
    num_alone_ = next_alone_;
    next_alone_ = std::min(2 * next_alone_, kLongestAlone);
  } else if (!is_slow) {
    next_alone_ = std::max(next_alone_ / 2, kFirstAlone);
  }
}

void Team::share(int num_tasks, Call call, void* context) {
  job_ = {call, context};
  num_done_.store(0, std::memory_order_relaxed);
  ticket_.store(std::uint64_t(num_tasks) << kTaskBits);
  loop_.fetch_add(1);
  wake();
  while (take_one(0)) {
  }
  if (num_done_.load(std::memory_order_acquire) == num_tasks) return;
  const double started = seconds_();
  for (int looks = 0; num_done_.load(std::memory_order_acquire) != num_tasks; ++looks) {
    if (looks < kPolite) {
      pause();
    } else {
      sched_yield();
    }
  }
  waited_ += seconds_() - started;
}

bool Team::take_one(int thread) {
  const std::uint64_t ticket = ticket_.fetch_add(1);
  const auto task = static_cast<std::uint32_t>(ticket);
  if (task >= ticket >> kTaskBits) return false;
  job_.call(job_.context, static_cast<int>(task), thread);
  num_done_.fetch_add(1, std::memory_order_release);
  return true;
}

void Team::work(int thread) {
  std::uint32_t seen = 0;
  while (sleep_until_next(seen)) {
    seen = loop_.load();
    if (is_over_.load()) return;  // the end may be what was seen: no other loop follows it
    while (take_one(thread)) {
    }
  }
}

bool Team::sleep_until_next(std::uint32_t seen) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + spin_time_;
  do {
    for (int looks = 0; looks < kLooksPerClock; ++looks) {
      if (loop_.load(std::memory_order_acquire) != seen) return !is_over_.load();
      pause();
    }
  } while (Clock::now() < until);
  std::unique_lock lock(sleep_);
  num_asleep_.fetch_add(1);
  awake_.wait(lock, [&] { return loop_.load() != seen; });
  num_asleep_.fetch_sub(1);
  return !is_over_.load();
}

// After `loop_` has changed. Whoever is not counted yet looks at it again before sleeping; whoever is counted
// holds the lock until it sleeps.
void Team::wake() {
  if (num_asleep_.load() == 0) return;
  { const std::scoped_lock lock(sleep_); }
  awake_.notify_all();
}

}  // namespace dragoman
