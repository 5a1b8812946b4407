// AMX's tiles on processors that lack them: what they refuse as an illegal instruction is done here.
//
// Loading this library is all it takes. Instructions are those that the kernels use, decoded and done
// as Intel's manual describes them ("Intel 64 and IA-32 Architectures Software Developer's Manual",
// volume 2, and volume 1, chapter 18). Shapes that do not fit together are refused as there: the
// process ends by SIGILL. So kernels are tested as they were compiled, to the instruction.

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <cstring>

namespace {

constexpr int kNumTiles = 8, kMaxRows = 16, kMaxRowBytes = 64;

struct Tiles {
  std::uint8_t config[64];  // all zero: tiles may not be used
  std::uint8_t bytes[kNumTiles][kMaxRows][kMaxRowBytes];

  bool is_configured() const { return config[0] == 1; }
  int row_bytes(int tile) const { return config[16 + 2 * tile] | config[17 + 2 * tile] << 8; }
  int num_rows(int tile) const { return config[48 + tile]; }
  bool is_usable(int tile) const {
    return tile < kNumTiles && is_configured() && num_rows(tile) > 0 && row_bytes(tile) > 0;
  }
};

// A thread's tiles. They are asked for by a handler of a signal, which may have interrupted an allocation:
// so the pointer lies where the thread's own memory has a fixed place (what is loaded late is otherwise
// given its place at the first use, by malloc), and pages come from the system, zeros all of them. They stay
// when a thread ends.
[[gnu::tls_model("initial-exec")]] thread_local Tiles* tiles_of_thread = nullptr;

Tiles* own_tiles() {
  if (tiles_of_thread == nullptr) {
    void* pages = mmap(nullptr, sizeof(Tiles), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
    tiles_of_thread = static_cast<Tiles*>(pages);
  }
  return tiles_of_thread;
}

struct sigaction previous;

// General registers in the order of their numbers.
constexpr int kRegisters[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                              REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

// An instruction of three bytes of VEX, an opcode, and an operand that may lie in memory.
struct Instruction {
  int prefix, map, opcode;
  int field, other, third;  // reg, rm and vvvv: numbers of registers
  bool in_memory;
  std::uint8_t* base;       // of an operand in memory, the index left out
  std::int64_t index;
  const std::uint8_t* next;
};

bool decode(const std::uint8_t* at, const greg_t* registers, Instruction& found) {
  if (at[0] != 0xC4) return false;
  const bool has_r = !(at[1] & 0x80), has_x = !(at[1] & 0x40), has_b = !(at[1] & 0x20);
  found.map = at[1] & 0x1F;
  found.prefix = at[2] & 3;  // none, 66, F3, F2
  found.third = ~(at[2] >> 3) & 15;
  if ((at[2] & 0x84) != 0) return false;  // W or L
  found.opcode = at[3];
  const int mode = at[4] >> 6, rm = at[4] & 7;
  found.field = (at[4] >> 3 & 7) | has_r << 3;
  found.other = rm | has_b << 3;
  found.in_memory = mode != 3;
  at += 5;
  found.base = nullptr;
  found.index = 0;
  if (found.in_memory) {
    std::int64_t address = 0;
    bool is_relative = mode == 0 && rm == 5, has_base = !is_relative;
    int base = found.other;
    if (rm == 4) {
      const int scale = at[0] >> 6, index = (at[0] >> 3 & 7) | has_x << 3;
      base = (at[0] & 7) | has_b << 3;
      has_base = !(mode == 0 && (at[0] & 7) == 5);
      if (index != 4) found.index = registers[kRegisters[index]] << scale;
      ++at;
    }
    if (has_base) address = registers[kRegisters[base]];
    if (mode == 1) {
      address += static_cast<std::int8_t>(*at);
      at += 1;
    } else if (mode == 2 || !has_base) {
      std::int32_t displacement;
      std::memcpy(&displacement, at, sizeof displacement);
      address += displacement;
      at += 4;
    }
    if (is_relative) address += reinterpret_cast<std::int64_t>(at);
    found.base = reinterpret_cast<std::uint8_t*>(address);
  }
  found.next = at;
  return found.map == 2;
}

bool configure(Tiles& tiles, const std::uint8_t* from) {
  if (from[0] > 1) return false;
  std::memset(&tiles, 0, sizeof tiles);
  if (from[0] == 0) return true;
  for (int i = 2; i < 16; ++i) {
    if (from[i] != 0) return false;
  }
  std::memcpy(tiles.config, from, sizeof tiles.config);
  for (int tile = 0; tile < 16; ++tile) {
    const int bytes = tiles.row_bytes(tile), rows = tiles.num_rows(tile);
    if (tile >= kNumTiles && (bytes != 0 || rows != 0)) return false;
    if (bytes > kMaxRowBytes || rows > kMaxRows || (bytes == 0) != (rows == 0)) return false;
  }
  return true;
}

bool move(Tiles& tiles, int tile, std::uint8_t* place, std::int64_t stride, bool is_load) {
  if (!tiles.is_usable(tile)) return false;
  if (is_load) std::memset(tiles.bytes[tile], 0, sizeof tiles.bytes[tile]);
  for (int row = 0; row < tiles.num_rows(tile); ++row, place += stride) {
    std::uint8_t* own = tiles.bytes[tile][row];
    std::memcpy(is_load ? own : place, is_load ? place : own, tiles.row_bytes(tile));
  }
  return true;
}

// sums += a b, where four bytes of a row of `a` meet four of a row of `b`.
bool multiply(Tiles& tiles, int sums, int a, int b, bool is_a_signed, bool is_b_signed) {
  if (!tiles.is_usable(sums) || !tiles.is_usable(a) || !tiles.is_usable(b)) return false;
  if (sums == a || sums == b || a == b) return false;
  const int num_rows = tiles.num_rows(sums), num_columns = tiles.row_bytes(sums) / 4;
  const int num_fours = tiles.row_bytes(a) / 4;
  if (tiles.num_rows(a) != num_rows || tiles.row_bytes(b) != tiles.row_bytes(sums)) return false;
  if (tiles.row_bytes(a) % 4 != 0 || tiles.row_bytes(b) % 4 != 0) return false;
  if (tiles.num_rows(b) != num_fours) return false;
  const auto number = [](std::uint8_t byte, bool is_signed) {
    return is_signed ? static_cast<std::int8_t>(byte) : static_cast<int>(byte);
  };
  for (int row = 0; row < num_rows; ++row) {
    for (int column = 0; column < num_columns; ++column) {
      std::uint32_t sum;
      std::memcpy(&sum, tiles.bytes[sums][row] + 4 * column, sizeof sum);
      for (int four = 0; four < num_fours; ++four) {
        for (int i = 4 * four; i < 4 * four + 4; ++i) {
          sum += static_cast<std::uint32_t>(
              number(tiles.bytes[a][row][i], is_a_signed) *
              number(tiles.bytes[b][four][4 * column + i % 4], is_b_signed));
        }
      }
      std::memcpy(tiles.bytes[sums][row] + 4 * column, &sum, sizeof sum);
    }
  }
  return true;
}

bool run(Tiles& tiles, const Instruction& what) {
  enum { kNone, k66, kF3, kF2 };
  switch (what.opcode) {
    case 0x49:
      if (what.in_memory && what.prefix == kNone) return configure(tiles, what.base + what.index);
      if (what.in_memory && what.prefix == k66) {
        std::memcpy(what.base + what.index, tiles.config, sizeof tiles.config);
        return true;
      }
      if (!what.in_memory && what.prefix == kNone && what.field == 0 && what.other == 0) {
        std::memset(&tiles, 0, sizeof tiles);
        return true;
      }
      if (!what.in_memory && what.prefix == kF2 && tiles.is_usable(what.field)) {
        std::memset(tiles.bytes[what.field], 0, sizeof tiles.bytes[what.field]);
        return true;
      }
      return false;
    case 0x4B:
      if (!what.in_memory || what.prefix == kNone) return false;
      return move(tiles, what.field, what.base, what.index, what.prefix != kF3);
    case 0x5E: {
      if (what.in_memory) return false;
      const bool is_a_signed = what.prefix == kF2 || what.prefix == kF3;
      const bool is_b_signed = what.prefix == kF2 || what.prefix == k66;
      return multiply(tiles, what.field, what.other, what.third, is_a_signed, is_b_signed);
    }
    default:
      return false;
  }
}

void on_illegal(int, siginfo_t*, void* context) {
  greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  Instruction found{};
  const auto* at = reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]);
  Tiles* tiles = own_tiles();
  if (tiles != nullptr && decode(at, registers, found) && run(*tiles, found)) {
    registers[REG_RIP] = reinterpret_cast<greg_t>(found.next);
  } else {
    sigaction(SIGILL, &previous, nullptr);  // comes again, and is not for us
  }
}

[[gnu::constructor]] void install() {
  struct sigaction action = {};
  action.sa_sigaction = on_illegal;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, &previous);
}

}  // namespace
