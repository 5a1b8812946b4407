#include "shortlist.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace dragoman {
namespace {

constexpr std::size_t kStep = 8;  // every list has a multiple of so many tokens
constexpr float kImpossible = -std::numeric_limits<float>::infinity();

}  // namespace

Shortlist::Shortlist(std::shared_ptr<Network> network, std::vector<std::int32_t> always,
                     std::vector<std::int32_t> offsets, std::vector<std::int32_t> ids,
                     bool with_source)
    : network_(std::move(network)),
      always_(std::move(always)),
      offsets_(std::move(offsets)),
      ids_(std::move(ids)),
      with_source_(with_source),
      rows_(*network_->output),
      is_listed_(network_->output->num_outputs(), 0) {
  check();
}

// Everything that indexes an array later.
void Shortlist::check() const {
  const int num_sources = network_->source_table->num_outputs();
  const int num_targets = network_->output->num_outputs();
  const auto require = [](bool is_so, const char* message) {
    if (!is_so) throw std::invalid_argument(message);
  };
  require(network_->target_table->num_outputs() == num_targets,
          "what is fed and what is chosen must be one vocabulary");
  require(!with_source_ || num_sources <= num_targets, "source ids must be target ids");
  require(offsets_.size() == std::size_t(num_sources) + 1 && offsets_.front() == 0 &&
              std::size_t(offsets_.back()) == ids_.size() &&
              std::is_sorted(offsets_.begin(), offsets_.end()),
          "offsets must rise from 0 to the number of ids, one a source token");
  const auto are_targets = [&](const std::vector<std::int32_t>& ids) {
    return std::all_of(ids.begin(), ids.end(),
                       [&](std::int32_t id) { return id >= 0 && id < num_targets; });
  };
  require(are_targets(always_) && are_targets(ids_), "a listed id is out of range");
}

void Shortlist::add(std::int64_t token) {
  num_listed_ += !is_listed_[token];
  is_listed_[token] = 1;
}

void Shortlist::choose(const std::vector<std::int32_t>& source,
                       const std::vector<std::int64_t>& also, List& list) {
  for (const std::int32_t token : always_) add(token);
  for (const std::int64_t token : also) add(token);
  for (const std::int32_t token : source) {
    for (std::int32_t i = offsets_[token]; i < offsets_[token + 1]; ++i) add(ids_[i]);
    if (with_source_) add(token);
  }
  for (std::size_t token = 0; num_listed_ % kStep != 0 && token < is_listed_.size(); ++token) {
    add(static_cast<std::int64_t>(token));
  }
  list.tokens.clear();
  list.tokens.reserve(num_listed_);
  for (std::size_t token = 0; token < is_listed_.size(); ++token) {
    if (is_listed_[token]) list.tokens.push_back(static_cast<std::int32_t>(token));
  }
  std::fill(is_listed_.begin(), is_listed_.end(), 0);
  num_listed_ = 0;
}

void Shortlist::pack(Team& team, const std::vector<List*>& lists) const {
  struct Panel {
    List* list;
    int index;
  };
  std::vector<Panel> panels;
  const int num_inputs = network_->output->num_inputs();
  for (List* list : lists) {
    const int num_outputs = static_cast<int>(list->tokens.size());
    list->memory.reserve(Matrix::bytes_of(num_outputs, num_inputs));
    list->matrix = Matrix(list->memory.data(), num_outputs, num_inputs);
    for (int i = 0; i < list->matrix.num_panels(); ++i) panels.push_back({list, i});
  }
  team.run(static_cast<int>(panels.size()), [&](int task, int) {
    List& list = *panels[task].list;
    list.matrix.pack_panel(panels[task].index, rows_, list.tokens.data(), kImpossible,
                           list.memory.data());
  });
}

}  // namespace dragoman
