#include "shortlist.h"

#include <algorithm>
#include <cstring>
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
      row_bytes_(round_up(network_->output->num_inputs(), 64)),
      is_listed_(network_->output->num_outputs(), 0) {
  check();
  const Matrix& output = *network_->output;
  rows_.reserve(std::size_t(output.num_outputs()) * row_bytes_);
  std::memset(rows_.data(), 0, std::size_t(output.num_outputs()) * row_bytes_);
  for (int token = 0; token < output.num_outputs(); ++token) {
    const std::uint8_t* column =
        output.panel(token / kPanel) + std::size_t(token % kPanel) * 4;
    std::uint8_t* row = rows_.data() + std::size_t(token) * row_bytes_;
    for (int quad = 0; quad < output.num_quads(); ++quad, column += 4 * kPanel) {
      std::memcpy(row + quad * 4, column, 4);
    }
  }
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
  find_weights(list);
}

// Where the weights of the listed tokens are, with their scales and biases.
void Shortlist::find_weights(List& list) const {
  const Matrix& output = *network_->output;
  const int num_tokens = list.num_tokens(), num_places = list.num_panels() * kPanel;
  list.rows.assign(num_places, rows_.data());
  list.scale.reserve(num_places);
  list.bias.reserve(num_places);
  for (int place = 0; place < num_places; ++place) {
    const bool is_real = place < num_tokens;
    const std::int32_t token = is_real ? list.tokens[place] : 0;
    if (is_real) list.rows[place] += std::size_t(token) * row_bytes_;
    list.scale[place] = is_real ? output.scale(0)[token] : 0.0f;
    list.bias[place] = is_real ? output.bias(0)[token] : kImpossible;
  }
}

}  // namespace dragoman
