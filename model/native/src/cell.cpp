#include "cell.h"

#include "self_attention.h"
#include "ssru.h"

namespace dragoman {

std::unique_ptr<Cell> make_cell(const Network& network, Team& team, const Limits& limits,
                                const History& history, Stack& stack) {
  switch (network.decoder_cell) {
    case DecoderCell::kSelfAttention:
      return std::make_unique<SelfAttention>(network, team, limits, history, stack);
    case DecoderCell::kSsru:
      return std::make_unique<Ssru>(network, limits, stack);
  }
  return nullptr;  // there is no other kind
}

}  // namespace dragoman
