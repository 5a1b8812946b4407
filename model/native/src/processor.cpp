#include "processor.h"

#include <utility>

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
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

enum Register { kEax, kEbx, kEcx, kEdx };

// Whether this process may use tiles. The system has to be asked before the first one is, as it then
// saves more of a thread; it says no where a handler of signals has too little room for that. It may be
// asked again, and says the same.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM, of Linux 5.16
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// What cpuid says: a bit of a register (EAX, EBX, ECX, EDX) of a leaf; none of a leaf that there is not.
bool has_bit(unsigned leaf, unsigned subleaf, int index, int bit) {
  unsigned registers[4];
  return __get_cpuid_count(leaf, subleaf, &registers[0], &registers[1], &registers[2],
                           &registers[3]) != 0 &&
         (registers[index] >> bit & 1) != 0;
}

// Whether the system saves these registers when it changes threads, by their bits in XCR0.
bool saves(unsigned registers) {
  constexpr int kHasXgetbv = 27;
  if (!has_bit(1, 0, kEcx, kHasXgetbv)) return false;
  unsigned low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & registers) == registers;
}

// By cpuid (Intel's manual, volume 2, "CPUID") and by what the system saves of registers (volume 1, section
// 13.3). Compilers have a builtin for it, but not every compiler's library fills what it reads.
std::vector<InstructionSet> instruction_sets() {
  const bool has_256 = saves(0b110), has_512 = has_256 && saves(0b111 << 5);
  const Features avx2 = {{"avx2", has_256 && has_bit(7, 0, kEbx, 5)},
                         {"fma", has_256 && has_bit(1, 0, kEcx, 12)},
                         {"f16c", has_256 && has_bit(1, 0, kEcx, 29)}};
  const auto and_also = [](Features features, const Features& more) {
    features.insert(features.end(), more.begin(), more.end());
    return features;
  };
  const Features avx512 = and_also(avx2, {{"avx512f", has_512 && has_bit(7, 0, kEbx, 16)},
                                          {"avx512bw", has_512 && has_bit(7, 0, kEbx, 30)},
                                          {"avx512dq", has_512 && has_bit(7, 0, kEbx, 17)},
                                          {"avx512vl", has_512 && has_bit(7, 0, kEbx, 31)}});
  const Features avx512_vnni =
      and_also(avx512, {{"avx512_vnni", has_512 && has_bit(7, 0, kEcx, 11)}});
  const bool has_tiles =
      saves(0b11 << 17) && has_bit(7, 0, kEdx, 24) && has_bit(7, 0, kEdx, 25);
  return {
      lacking("avx512-amx",
              and_also(avx512_vnni, {{"amx_int8", has_tiles},
                                     {"amx_permission", has_tiles && may_use_tiles()}})),
      lacking("avx512-vnni", avx512_vnni),
      lacking("avx2-vnni", and_also(avx2, {{"avx_vnni", has_256 && has_bit(7, 1, kEax, 4)}})),
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
