#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace theseus::machine {

// What a processor says of itself: the answers of the CPUID instruction, and which registers the
// operating system saves (XCR0; unknown in most published dumps).
struct CpuidDump {
  struct Entry {
    uint32_t leaf = 0;
    uint32_t subleaf = 0;
    std::array<uint32_t, 4> registers = {};  // eax, ebx, ecx, edx
  };
  std::vector<Entry> entries;
  std::optional<uint64_t> xcr0;
};

// Reads the leaves that `describe` looks at. Empty where the processor has no CPUID (ARM).
CpuidDump read_cpuid();

// The lines of published dumps: "CPUID 00000007: EAX-EBX-ECX-EDX [SL 01]", and "XCR0 000000E7". Other
// lines are passed over. `cpuid_text` writes what `parse_cpuid` reads.
CpuidDump parse_cpuid(std::string_view text);
std::string cpuid_text(const CpuidDump& dump);

// A flag is set when the processor has the instructions and the operating system saves their registers.
// Without XCR0 the system is taken to save whatever the processor offers to save.
struct Processor {
  std::string vendor;  // "GenuineIntel", "AuthenticAMD", ...; empty: no CPUID
  std::string name;    // as its maker calls it; may be empty
  int family = 0;
  int model = 0;
  bool avx = false;
  bool avx2 = false;    // and FMA
  bool avx512 = false;  // F, CD, BW, DQ and VL, as matrix kernels need them
  bool avx512_bf16 = false;
  bool avx512_fp16 = false;
  bool amx_bf16 = false;
  // CPUID describes the tile registers (leaf 0x1D). Some hypervisors show AMX and hide the leaf; then
  // a library that sets the tiles up from it dies by an illegal instruction.
  bool amx_described = false;
};

Processor describe(const CpuidDump& dump);

// "avx2 avx512 avx512_bf16"; "none" where there are none.
std::string extensions_text(const Processor& processor);

}  // namespace theseus::machine
