#include "cell.h"

#include "self_attention.h"
#include "ssru.h"

namespace dragoman {

std::unique_ptr<Cell> make_cell(const Network& network, Team& team, const Limits& limits,
                                const History& history, Stack& stack) {
  if (network.decoder_cell == DecoderCell::kSsru) {
    return std::make_unique<Ssru>(network, limits, stack);
  }
  return std::make_unique<SelfAttention>(network, team, limits, history, stack);
}

}  // namespace dragoman
