#include "level.h"

#include <utility>

#include "session.h"

namespace dragoman {

const Level& level() {
  static constexpr Level kLevel{
      kInstructionSet,
      [](std::shared_ptr<Network> network, std::shared_ptr<Team> team, Limits limits,
         SpecialTokens tokens, std::shared_ptr<Shortlist> shortlist) -> std::unique_ptr<AnySession> {
        return std::make_unique<Session>(std::move(network), std::move(team), limits, tokens,
                                         std::move(shortlist));
      }};
  return kLevel;
}

}  // namespace dragoman
