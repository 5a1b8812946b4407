// The recurrent part of decoder layers, as an interface: what a row takes from what was fed to it
// before, and the state that it keeps for that.
//
// A cell is called once a layer and share, never once a row.
#pragma once

#include <memory>

#include "any_session.h"
#include "history.h"
#include "stack.h"

namespace dragoman {

class Cell {
 public:
  virtual ~Cell() = default;

  // The cell of layer `layer` for a share of a step's rows, norm and residual connection included: from
  // the stack's stream and input to its stream and input. A row at position 0 has no state yet,
  // whoever had the row before.
  virtual void step(const StepRow* rows, const Share& share, int layer) = 0;

  // Lets row `to` go on where row `from` stands after `length` positions. Nobody goes on from
  // what `to` had.
  virtual void copy(int from, int to, int length) = 0;

  // Row `row` ends after `length` positions: what it no longer needs may go back to the system.
  virtual void forget(int row, int length) = 0;
};

// The cell of a network; `stack` and `history` are those of the session that steps it.
std::unique_ptr<Cell> make_cell(const Network& network, Team& team, const Limits& limits,
                                const History& history, Stack& stack);

}  // namespace dragoman
