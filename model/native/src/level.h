// The kernels as they are compiled into a level.
#pragma once

#include "any_session.h"

namespace dragoman {

// Those of the instruction set that this file's library is compiled for.
const Level& level();

}  // namespace dragoman
