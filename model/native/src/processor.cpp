#include "processor.h"

#include <utility>

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
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

// Whether this process may use tiles. The system has to be asked before the first one is, as it then
// saves more of a thread; it says no where a handler of signals has too little room for that. It may be
// asked again, and says the same.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM, of Linux 5.16
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

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
  const Features avx512_vnni =
      and_also(avx512, {{"avx512_vnni", __builtin_cpu_supports("avx512vnni")}});
  const bool has_tiles = __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8");
  return {
      lacking("avx512-amx",
              and_also(avx512_vnni, {{"amx_int8", has_tiles},
                                     {"amx_permission", has_tiles && may_use_tiles()}})),
      lacking("avx512-vnni", avx512_vnni),
      lacking("avx2-vnni", and_also(avx2, {{"avx_vnni", __builtin_cpu_supports("avxvnni")}})),
      lacking("avx512", avx512),
      lacking("avx2", avx2),
  };
}

#elif defined(__aarch64__)

std::vector<InstructionSet> instruction_sets() {
  const bool has_products = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  const bool has_matrices = (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
  return {
      lacking("neon-i8mm", {{"asimddp", has_products}, {"i8mm", has_matrices}}),
      lacking("neon-dotprod", {{"asimddp", has_products}}),
      lacking("neon", {}),
  };
}

#else

std::vector<InstructionSet> instruction_sets() { return {}; }

#endif

}  // namespace dragoman
