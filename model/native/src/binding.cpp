// The module `model.native._kernels`: what Python sees of the kernels.
//
// Arrays are checked for type and order by pybind11 and for size here; nothing is copied but the
// weights, and the interpreter's lock is free while they are packed and while a step runs. What is seen of
// weights is `network_binding`. Compiled for every processor; what is not is a level's (any_session.h).

#include <pybind11/functional.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>

#include "network_binding.h"
#include "processor.h"
#include "ranking.h"
#include "request_types.h"

using namespace dragoman;

namespace {

void require_range(bool is_so, const char* message) {
  if (!is_so) throw std::out_of_range(message);
}

// A loop whose tasks are Python's: how tests see which thread does what, and hold one up. What a
// task raises comes out when all of them are done.
void run_python(Team& team, int num_tasks, const py::function& body) {
  std::exception_ptr raised;  // written under the interpreter's lock
  {
    const py::gil_scoped_release free;
    team.run(num_tasks, [&](int task, int thread) {
      const py::gil_scoped_acquire hold;
      try {
        body(task, thread);
      } catch (...) {
        raised = std::current_exception();
      }
    });
  }
  if (raised) std::rethrow_exception(raised);
}

// A ranking of `size` places after tokens have come in the order given: which thread finds what,
// and so in which order their lists are merged, cannot be chosen.
std::vector<std::int32_t> rank(const std::vector<float>& logits,
                               const std::vector<std::int32_t>& tokens, int size) {
  require(logits.size() == tokens.size() && size >= 1, "one logit a token, and a place");
  std::vector<float> best(size, -std::numeric_limits<float>::infinity());
  std::vector<std::int32_t> ranked(size, 0);
  Ranking ranking{best.data(), ranked.data(), size};
  for (std::size_t i = 0; i < tokens.size(); ++i) ranking.insert(logits[i], tokens[i]);
  return ranked;
}

std::vector<std::int32_t> vector_of(const Array<std::int32_t>& values) {
  return {values.data(), values.data() + values.size()};
}

// By name, what the machine lacks of each instruction set that kernels are written for.
py::dict missing_features() {
  py::dict missing;
  for (const InstructionSet& set : instruction_sets()) missing[py::str(set.name)] = set.missing;
  return missing;
}

// The kernels that a level's module has.
const Level& level_of(const py::capsule& capsule) {
  require(std::string(capsule.name()) == "dragoman.level", "a level must be that of kernels");
  return *capsule.get_pointer<Level>();
}

// What is checked once a call, so that no index from outside can leave an array.
class CheckedSession {
 public:
  CheckedSession(const Level& level, std::shared_ptr<Network> network, std::shared_ptr<Team> team,
                 Limits limits, SpecialTokens tokens, std::shared_ptr<Shortlist> shortlist)
      : network_(network),
        limits_(limits),
        session_(level.open(network, std::move(team), limits, tokens, shortlist)) {
    if (!session_) throw std::bad_alloc();
    const int num_targets = network->output->num_outputs();
    require(!shortlist || (&shortlist->network() == network.get() && tokens.eos >= 0 &&
                           std::max(tokens.eos, tokens.forced_first) < num_targets),
            "a shortlist must be of the network, and the special tokens among its targets");
    require(std::max(limits.max_source_length, limits.max_target_length) <= network->max_positions,
            "the tables of positions are shorter than the session's limits");
  }

  void admit(const std::vector<std::int64_t>& names, const std::vector<int>& slots,
             std::vector<std::vector<int>> rows, const py::list& requests) {
    const std::size_t num = names.size();
    require(num > 0 && slots.size() == num && rows.size() == num && requests.size() == num,
            "at least one sentence, and a name, a slot and rows for each");
    std::vector<Request> placed;
    placed.reserve(num);
    for (std::size_t i = 0; i < num; ++i) {
      placed.push_back(types_.read(names[i], slots[i], std::move(rows[i]), requests[i]));
      check(placed.back());
    }
    const py::gil_scoped_release free;
    session_->admit(placed);
  }

  py::list step() {
    std::vector<Finished> finished;
    num_fed_ = 0;
    {
      const py::gil_scoped_release free;
      finished = session_->step();
    }
    py::list result;
    for (const Finished& sentence : finished) result.append(types_.write(sentence));
    return result;
  }

  void release(std::int64_t name) { session_->release(name); }

  std::vector<std::int32_t> written(std::int64_t name) const { return session_->written(name); }

  void encode(const Array<std::int32_t>& ids, const Array<std::int32_t>& lengths,
              const Array<std::int32_t>& slots) {
    require(lengths.size() == slots.size() && lengths.size() > 0, "one slot a sentence");
    std::int64_t total = 0;
    for (py::ssize_t i = 0; i < lengths.size(); ++i) {
      require_range(lengths.data()[i] >= 1 && lengths.data()[i] <= limits_.max_source_length &&
                  slots.data()[i] >= 0 && slots.data()[i] < limits_.max_slots,
              "a sentence or a slot is out of range");
      total += lengths.data()[i];
    }
    require(total == ids.size(), "lengths must add up to the ids");
    const int num_tokens = network_->source_table->num_outputs();
    for (py::ssize_t i = 0; i < ids.size(); ++i) {
      require_range(ids.data()[i] >= 0 && ids.data()[i] < num_tokens, "a source id is out of range");
    }
    const py::gil_scoped_release free;
    session_->encode(ids.data(), lengths.data(), slots.data(), static_cast<int>(lengths.size()));
  }

  void feed(const Array<std::int64_t>& tokens, const Array<std::int64_t>& rows,
            const Array<std::int64_t>& slots, const Array<std::int64_t>& positions,
            Array<float> log_probs, Array<std::int64_t> best,
            std::optional<Array<std::int64_t>> attended, std::optional<Array<float>> weights) {
    const py::ssize_t num_rows = tokens.size();
    require(num_rows >= 1 && rows.size() == num_rows && slots.size() == num_rows &&
                positions.size() == num_rows && (!attended || attended->size() == num_rows),
            "one row, slot and position a token");
    require(log_probs.ndim() == 2 && best.ndim() == 2 && log_probs.shape(0) == num_rows &&
                best.shape(0) == num_rows && log_probs.shape(1) == best.shape(1) &&
                best.shape(1) >= 1,
            "the results must be (rows, candidates)");
    require(!weights || (attended && weights->ndim() == 2 && weights->shape(0) == num_rows &&
                         weights->shape(1) <= limits_.max_source_length),
            "weights must be (rows, source positions), beside `attended`");
    const int num_tokens = network_->target_table->num_outputs();
    num_fed_ = 0;
    step_.resize(num_rows);
    for (py::ssize_t i = 0; i < num_rows; ++i) {
      const std::int64_t token = tokens.data()[i], row = rows.data()[i], slot = slots.data()[i],
                         position = positions.data()[i];
      require_range(token >= 0 && token < num_tokens && row >= 0 && row < limits_.max_rows &&
                  slot >= 0 && slot < limits_.max_slots && position >= 0 &&
                  position < limits_.max_target_length,
              "a token, row, slot or position is out of range");
      step_[i] = {token, static_cast<std::int32_t>(row), static_cast<std::int32_t>(slot),
                  static_cast<std::int32_t>(position)};
    }
    float* to_log_probs = log_probs.mutable_data();
    std::int64_t* to_best = best.mutable_data();
    std::int64_t* to_attended = attended ? attended->mutable_data() : nullptr;
    const int num_candidates = static_cast<int>(best.shape(1));
    float* to_weights = weights ? weights->mutable_data() : nullptr;
    const std::size_t num_weights = weights ? weights->shape(1) : 0;
    const py::gil_scoped_release free;
    session_->feed(step_.data(), static_cast<int>(num_rows), num_candidates, nullptr, nullptr,
                  to_log_probs, to_best, to_attended);
    num_fed_ = static_cast<int>(num_rows);
    for (int i = 0; to_weights != nullptr && i < static_cast<int>(num_rows); ++i) {
      const float* own = session_->weights(i);
      if (own != nullptr) std::copy_n(own, num_weights, to_weights + i * num_weights);
    }
  }

  void log_probs_of(const Array<std::int64_t>& tokens, Array<float> log_probs) const {
    require(num_fed_ > 0 && tokens.ndim() == 2 && tokens.shape(0) == num_fed_ &&
                log_probs.ndim() == 2 && log_probs.shape(0) == tokens.shape(0) &&
                log_probs.shape(1) == tokens.shape(1),
            "tokens and results must be (rows of the last feed, tokens)");
    const std::size_t num = tokens.shape(1);
    for (py::ssize_t i = 0; i < tokens.size(); ++i) {
      require_range(tokens.data()[i] >= 0 && tokens.data()[i] < network_->output->num_outputs(),
                    "a token is out of range");
    }
    float* to = log_probs.mutable_data();
    for (int row = 0; row < num_fed_; ++row) {
      session_->log_probs_of(row, tokens.data() + row * num,
                             static_cast<int>(num), to + row * num);
    }
  }

  std::vector<double> seconds() const {
    const StepSeconds& s = session_->seconds();
    return {s.embedding, s.self_attention, s.cross_attention, s.feed_forward, s.output, s.search};
  }

 private:
  void check(const Request& request) const {
    const SearchSettings& settings = request.settings;
    const int num_sources = network_->source_table->num_outputs();
    const int num_targets = network_->target_table->num_outputs();
    const auto is_within = [](auto value, auto limit) { return value >= 0 && value < limit; };
    const auto all_within = [&](const auto& values, auto limit) {
      return std::all_of(values.begin(), values.end(),
                         [&](auto value) { return is_within(value, limit); });
    };
    require_range(is_within(request.slot, limits_.max_slots), "a slot is out of range");
    require_range(!request.rows.empty() && all_within(request.rows, limits_.max_rows),
                  "a row is out of range");
    require_range(!request.source.empty() &&
                      request.source.size() <= std::size_t(limits_.max_source_length) &&
                      all_within(request.source, num_sources),
                  "a source id or length is out of range");
    require_range(!request.prefix.empty() && all_within(request.prefix, num_targets),
                  "a prefix id is out of range");
    require_range(all_within(request.forced, num_targets), "a forced id is out of range");
    require_range(all_within(request.suppressed, network_->output->num_outputs()),
                  "a suppressed id is out of range");
    check_phrases(request);
    require_range(settings.max_length >= 1 &&
                      request.prefix.size() + settings.max_length <=
                          std::size_t(limits_.max_target_length),
                  "a target length is out of range");
    const Sampling& sampling = settings.sampling;
    require(sampling.temperature >= 0 && sampling.top_k >= 1 && sampling.top_p > 0,
            "nothing can be drawn so");
    require(settings.no_repeat_ngram >= 0, "no_repeat_ngram must not be negative");
    require(settings.num_candidates >= 2 * settings.beam_size && settings.num_hypotheses >= 1 &&
                settings.num_hypotheses <= settings.beam_size,
            "a search is impossible");
    require(settings.num_groups >= 1 && settings.beam_size % settings.num_groups == 0 &&
                (settings.num_groups == 1 || (sampling.temperature == 0 && request.phrases.empty())),
            "beams cannot be divided so");
  }

  void check_phrases(const Request& request) const {
    const int num_targets = network_->target_table->num_outputs();
    const int limit = std::min(num_targets, network_->output->num_outputs());
    std::size_t num_tokens = 0;
    for (const Alternatives& phrase : request.phrases) {
      require(!phrase.empty(), "a phrase has no alternatives");
      for (const Path& path : phrase) {
        require(!path.empty(), "a phrase has no tokens");
        num_tokens += path.size();
        for (const std::int64_t token : path) {
          require_range(token >= 0 && token < limit, "a phrase's id is out of range");
        }
      }
    }
    require(request.phrases.size() <= Phrases::kMaxPhrases && num_tokens <= Phrases::kMaxTokens,
            "a sentence has too many phrases");
    require(request.phrases.empty() || request.settings.sampling.temperature == 0,
            "what is drawn cannot have phrases");
  }

  RequestTypes types_;
  std::shared_ptr<Network> network_;
  Limits limits_;
  std::unique_ptr<AnySession> session_;
  std::vector<StepRow> step_;
  int num_fed_ = 0;  // rows of a `feed` that no other work has followed
};

}  // namespace

PYBIND11_MODULE(_kernels, module) {
  module.doc() = "int8 decoding on CPUs";
  module.def("missing_features", &missing_features);
  module.def("rank", &rank, py::arg("logits"), py::arg("tokens"), py::arg("size"));
  py::class_<Team, std::shared_ptr<Team>>(module, "Team")
      .def(py::init<int>(), py::arg("num_threads"))
      .def(py::init<int, Team::Seconds>(), py::arg("num_threads"), py::arg("seconds"))
      .def(py::init([](int num_threads, int spin_microseconds) {
             return std::make_shared<Team>(num_threads, Team::steady_seconds,
                                           std::chrono::microseconds(spin_microseconds));
           }),
           py::arg("num_threads"), py::kw_only(), py::arg("spin_microseconds"))
      .def("run", &run_python, py::arg("num_tasks"), py::arg("body"))
      .def("begin", &Team::begin)
      .def("end", &Team::end)
      .def_property_readonly("num_threads", &Team::size)
      .def_property_readonly("waited_seconds", &Team::waited_seconds)
      .def_property_readonly("num_alone", &Team::num_alone);
  bind_network(module);
  py::class_<Shortlist, std::shared_ptr<Shortlist>>(module, "Shortlist")
      .def(py::init([](std::shared_ptr<Network> network, const Array<std::int32_t>& always,
                       const Array<std::int32_t>& offsets, const Array<std::int32_t>& ids,
                       bool with_source) {
             return std::make_shared<Shortlist>(network, vector_of(always), vector_of(offsets),
                                                vector_of(ids), with_source);
           }),
           py::arg("network"), py::kw_only(), py::arg("always"), py::arg("offsets"),
           py::arg("ids"), py::arg("with_source"));
  py::class_<CheckedSession>(module, "Session")
      .def(py::init([](const py::capsule& level, std::shared_ptr<Network> network,
                       std::shared_ptr<Team> team, int max_rows,
                       int max_slots, int max_source_length, int max_target_length,
                       std::int64_t eos_id, std::int64_t forced_first_id,
                       std::shared_ptr<Shortlist> shortlist) {
             return std::make_unique<CheckedSession>(
                 level_of(level), network, team, Limits{max_rows, max_slots, max_source_length, max_target_length},
                 SpecialTokens{eos_id, forced_first_id}, shortlist);
           }),
           py::arg("level"), py::arg("network"), py::arg("team"), py::kw_only(),
           py::arg("max_rows"),
           py::arg("max_slots"), py::arg("max_source_length"), py::arg("max_target_length"),
           py::arg("eos_id"), py::arg("forced_first_id") = -1, py::arg("shortlist") = nullptr)
      .def("admit", &CheckedSession::admit, py::kw_only(), py::arg("names"), py::arg("slots"),
           py::arg("rows"), py::arg("requests"))
      .def("step", &CheckedSession::step)
      .def("release", &CheckedSession::release, py::arg("name"))
      .def("written", &CheckedSession::written, py::arg("name"))
      .def("encode", &CheckedSession::encode, py::arg("ids").noconvert(),
           py::arg("lengths").noconvert(), py::arg("slots").noconvert())
      .def("feed", &CheckedSession::feed, py::arg("tokens").noconvert(),
           py::arg("rows").noconvert(), py::arg("slots").noconvert(),
           py::arg("positions").noconvert(), py::arg("log_probs").noconvert(),
           py::arg("best").noconvert(), py::arg("attended"), py::arg("weights") = py::none())
      .def("log_probs_of", &CheckedSession::log_probs_of, py::arg("tokens").noconvert(),
           py::arg("log_probs").noconvert())
      .def("seconds", &CheckedSession::seconds);
}
