// The types of `model.request` as the kernels see them: requests are read, and finished sentences
// made, by the names of their attributes.
//
// Used under the interpreter's lock.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "any_session.h"

namespace dragoman {

namespace py = pybind11;

inline StoppingRule rule_of(const std::string& name) {
  if (name == "exact") return StoppingRule::kExact;
  if (name == "first") return StoppingRule::kFirst;
  if (name == "heuristic") return StoppingRule::kHeuristic;
  if (name == "bound") return StoppingRule::kBound;
  throw std::invalid_argument("stopping must be exact, first, heuristic or bound");
}

// An attribute's name, made once: Python then finds the attribute by the name's address.
class Name {
 public:
  explicit Name(const char* name)
      : name_(py::reinterpret_steal<py::str>(PyUnicode_InternFromString(name))) {}

  template <class T>
  T of(const py::handle& object) const {
    return object.attr(name_).template cast<T>();
  }

 private:
  py::str name_;
};

template <class T>
py::tuple tuple_of(const std::vector<T>& values) {
  return py::tuple(py::cast(values));
}

// A request read from Python, and a finished sentence made there.
class RequestTypes {
 public:
  // Reads a request, and adds where it will lie.
  Request read(std::int64_t name, int slot, std::vector<int> rows, const py::handle& asked) const {
    const py::object search = search_.of<py::object>(asked);
    SearchSettings settings{};
    settings.beam_size = static_cast<int>(rows.size());
    settings.num_candidates = candidates_.of<int>(search);
    settings.num_hypotheses = num_hypotheses_.of<int>(search);
    settings.max_length = max_length_.of<int>(search);
    settings.length_penalty = length_penalty_.of<double>(search);
    settings.rule = rule_of(stopping_.of<std::string>(search));
    settings.with_alignment = with_alignment_.of<bool>(search);
    settings.sampling = read_sampling(search);
    settings.num_groups = num_groups_.of<int>(search);
    settings.diversity_penalty = diversity_penalty_.of<double>(search);
    settings.no_repeat_ngram = no_repeat_ngram_.of<int>(search);
    Request request{};
    request.name = name;
    request.slot = slot;
    request.rows = std::move(rows);
    request.source = source_ids_.of<std::vector<std::int32_t>>(asked);
    request.prefix = prefix_ids_.of<std::vector<std::int64_t>>(asked);
    request.suppressed = suppressed_ids_.of<std::vector<std::int32_t>>(asked);
    request.forced = forced_ids_.of<std::vector<std::int64_t>>(asked);
    request.phrases = phrases_.of<std::vector<Alternatives>>(asked);
    request.settings = settings;
    return request;
  }

  py::object write(const Finished& sentence) const {
    using namespace py::literals;
    py::tuple hypotheses(sentence.hypotheses.size());
    for (std::size_t i = 0; i < sentence.hypotheses.size(); ++i) {
      const Hypothesis& found = sentence.hypotheses[i];
      hypotheses[i] = hypothesis_(
          "token_ids"_a = tuple_of(found.trail.tokens), "score"_a = found.score,
          "token_log_probs"_a = tuple_of(found.trail.log_probs),
          "is_truncated"_a = found.is_truncated,
          "alignment"_a = sentence.with_alignment ? py::object(tuple_of(found.trail.sources))
                                                  : py::object(py::none()),
          "num_missed"_a = found.num_missed);
    }
    return finished_("slot_id"_a = sentence.name, "hypotheses"_a = hypotheses);
  }

 private:
  Sampling read_sampling(const py::object& search) const {
    const py::object asked = sampling_.of<py::object>(search);
    if (asked.is_none()) return {};
    return {temperature_.of<double>(asked), top_k_.of<int>(asked), top_p_.of<double>(asked),
            seed_.of<std::uint64_t>(asked)};
  }

  Name source_ids_{"source_ids"}, prefix_ids_{"prefix_ids"}, suppressed_ids_{"suppressed_ids"},
      search_{"search"}, candidates_{"candidates"}, num_hypotheses_{"num_hypotheses"},
      max_length_{"max_length"}, length_penalty_{"length_penalty"}, stopping_{"stopping"},
      with_alignment_{"with_alignment"}, forced_ids_{"forced_ids"}, phrases_{"phrases"}, sampling_{"sampling"},
      num_groups_{"num_groups"}, diversity_penalty_{"diversity_penalty"},
      no_repeat_ngram_{"no_repeat_ngram"},
      temperature_{"temperature"}, top_k_{"top_k"}, top_p_{"top_p"}, seed_{"seed"};
  py::module_ module_ = py::module_::import("model.request");
  py::object hypothesis_ = module_.attr("Hypothesis"), finished_ = module_.attr("FinishedSentence");
};

}  // namespace dragoman
