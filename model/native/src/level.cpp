#include "level.h"

#include <new>
#include <stdexcept>
#include <utility>

#include "session.h"

namespace dragoman {

const Level& level() {
  static constexpr Level kLevel{
      kInstructionSet,
      [](std::shared_ptr<Network> network, std::shared_ptr<Team> team, Limits limits,
         SpecialTokens tokens, std::shared_ptr<Shortlist> shortlist) -> std::unique_ptr<AnySession> {
        try {
          return std::make_unique<Session>(std::move(network), std::move(team), limits, tokens,
                                           std::move(shortlist));
        } catch (const std::bad_alloc&) {
          return nullptr;
        } catch (const std::length_error&) {  // more than any vector may have
          return nullptr;
        }
      }};
  return kLevel;
}

}  // namespace dragoman
