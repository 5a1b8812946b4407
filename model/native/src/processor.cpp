#include "processor.h"

#include <utility>

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace dragoman {
namespace {

using Features = std::vector<std::pair<const char*, bool>>;

InstructionSet lacking(const char* name, const Features& features) {
  InstructionSet set{name, {}};
  for (const auto& [feature, is_there] : features) {
    if (!is_there) set.missing.push_back(feature);
  }
  return set;
}

}  // namespace

#if defined(__x86_64__)

// By cpuid, and by what the system saves of registers (xgetbv).
std::vector<InstructionSet> instruction_sets() {
  __builtin_cpu_init();
  const Features avx2 = {{"avx2", __builtin_cpu_supports("avx2")},
                         {"fma", __builtin_cpu_supports("fma")},
                         {"f16c", __builtin_cpu_supports("f16c")}};
  const auto and_also = [](Features features, const Features& more) {
    features.insert(features.end(), more.begin(), more.end());
    return features;
  };
  const Features avx512 = and_also(avx2, {{"avx512f", __builtin_cpu_supports("avx512f")},
                                          {"avx512bw", __builtin_cpu_supports("avx512bw")},
                                          {"avx512dq", __builtin_cpu_supports("avx512dq")},
                                          {"avx512vl", __builtin_cpu_supports("avx512vl")}});
  return {
      lacking("avx512-vnni",
              and_also(avx512, {{"avx512_vnni", __builtin_cpu_supports("avx512vnni")}})),
      lacking("avx2-vnni", and_also(avx2, {{"avx_vnni", __builtin_cpu_supports("avxvnni")}})),
      lacking("avx512", avx512),
      lacking("avx2", avx2),
  };
}

#elif defined(__aarch64__)

std::vector<InstructionSet> instruction_sets() {
  return {
      lacking("neon-dotprod", {{"asimddp", (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0}}),
      lacking("neon", {}),
  };
}

#else

std::vector<InstructionSet> instruction_sets() { return {}; }

#endif

}  // namespace dragoman
