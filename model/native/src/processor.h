// What the processor and the system let a program use.
#pragma once

#include <string>
#include <vector>

namespace dragoman {

// An instruction set that kernels are written for, and what the machine lacks of it.
struct InstructionSet {
  std::string name;
  std::vector<std::string> missing;
};

// All of this architecture, the fastest first.
std::vector<InstructionSet> instruction_sets();

}  // namespace dragoman
