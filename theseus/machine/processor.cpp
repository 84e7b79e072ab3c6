#include "theseus/machine/processor.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace theseus::machine {
namespace {

constexpr uint32_t kExtended = 0x80000000;  // the leaves with the processor's name

enum Register { kEax, kEbx, kEcx, kEdx };

uint32_t value_of(const CpuidDump& dump, uint32_t leaf, uint32_t subleaf, Register which) {
  for (const auto& entry : dump.entries) {
    if (entry.leaf == leaf && entry.subleaf == subleaf) {
      return entry.registers[which];
    }
  }
  return 0;
}

std::string letters(
    const std::array<uint32_t, 4>& registers, std::initializer_list<Register> order) {
  std::string text;
  for (const auto which : order) {
    std::array<char, 4> bytes;
    std::memcpy(bytes.data(), &registers[which], bytes.size());
    text.append(bytes.data(), bytes.size());
  }
  return text;
}

std::string vendor_of(const CpuidDump& dump) {
  for (const auto& entry : dump.entries) {
    if (entry.leaf == 0) {
      return letters(entry.registers, {kEbx, kEdx, kEcx});
    }
  }
  return "";
}

std::string name_of(const CpuidDump& dump) {
  std::string name;
  for (uint32_t leaf = kExtended + 2; leaf <= kExtended + 4; ++leaf) {
    for (const auto& entry : dump.entries) {
      if (entry.leaf == leaf) {
        name += letters(entry.registers, {kEax, kEbx, kEcx, kEdx});
      }
    }
  }
  name = name.substr(0, name.find('\0'));
  const auto first = name.find_first_not_of(' ');
  const auto last = name.find_last_not_of(' ');
  return first == std::string::npos ? "" : name.substr(first, last - first + 1);
}

}  // namespace

CpuidDump read_cpuid() {
  CpuidDump dump;
#if defined(__x86_64__)
  const auto add = [&](uint32_t leaf, uint32_t subleaf) {
    CpuidDump::Entry entry = {.leaf = leaf, .subleaf = subleaf};
    auto& [eax, ebx, ecx, edx] = entry.registers;
    __cpuid_count(leaf, subleaf, eax, ebx, ecx, edx);
    dump.entries.push_back(entry);
    return eax;
  };
  const auto highest = add(0, 0);
  add(1, 0);
  // Beyond the highest leaf processors answer with another leaf's values.
  for (const auto& [leaf, subleaf] :
       {std::pair<uint32_t, uint32_t>{7, 0}, {7, 1}, {0xD, 0}, {0x1D, 0}, {0x1D, 1}}) {
    if (leaf <= highest) {
      add(leaf, subleaf);
    }
  }
  if (add(kExtended, 0) >= kExtended + 4) {
    for (uint32_t leaf = kExtended + 1; leaf <= kExtended + 4; ++leaf) {
      add(leaf, 0);
    }
  }
  constexpr uint32_t kOsxsave = 1u << 27;
  if ((value_of(dump, 1, 0, kEcx) & kOsxsave) != 0) {
    uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    dump.xcr0 = (static_cast<uint64_t>(high) << 32) | low;
  }
#endif
  return dump;
}

CpuidDump parse_cpuid(std::string_view text) {
  CpuidDump dump;
  while (!text.empty()) {
    const std::string line(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    CpuidDump::Entry entry;
    auto& [eax, ebx, ecx, edx] = entry.registers;
    uint64_t xcr0 = 0;
    if (std::sscanf(
            line.c_str(), "CPUID %8" SCNx32 ": %8" SCNx32 "-%8" SCNx32 "-%8" SCNx32 "-%8" SCNx32,
            &entry.leaf, &eax, &ebx, &ecx, &edx) == 5) {
      if (const auto place = line.find("[SL "); place != std::string::npos) {
        std::sscanf(line.c_str() + place, "[SL %" SCNx32, &entry.subleaf);
      }
      dump.entries.push_back(entry);
    } else if (std::sscanf(line.c_str(), "XCR0 %" SCNx64, &xcr0) == 1) {
      dump.xcr0 = xcr0;
    }
  }
  return dump;
}

std::string cpuid_text(const CpuidDump& dump) {
  std::string text;
  std::array<char, 80> line;
  for (const auto& [leaf, subleaf, registers] : dump.entries) {
    const auto& [eax, ebx, ecx, edx] = registers;
    std::snprintf(
        line.data(), line.size(),
        "CPUID %08" PRIX32 ": %08" PRIX32 "-%08" PRIX32 "-%08" PRIX32 "-%08" PRIX32
        " [SL %02" PRIX32 "]\n",
        leaf, eax, ebx, ecx, edx, subleaf);
    text += line.data();
  }
  if (dump.xcr0) {
    std::snprintf(line.data(), line.size(), "XCR0 %08" PRIX64 "\n", *dump.xcr0);
    text += line.data();
  }
  return text;
}

Processor describe(const CpuidDump& dump) {
  // What the operating system must save for the registers of AVX, AVX-512 and AMX (bits of XCR0).
  constexpr uint64_t kAvxState = 0x6, kAvx512State = 0xE6, kTileState = 0x60000;
  Processor processor = {.vendor = vendor_of(dump), .name = name_of(dump)};
  const auto signature = value_of(dump, 1, 0, kEax);
  processor.family = static_cast<int>(signature >> 8 & 0xF);
  processor.model = static_cast<int>(signature >> 4 & 0xF);
  if (processor.family == 0x6 || processor.family == 0xF) {
    processor.model |= static_cast<int>(signature >> 12 & 0xF0);
  }
  if (processor.family == 0xF) {
    processor.family += static_cast<int>(signature >> 20 & 0xFF);
  }

  const auto bits_1c = value_of(dump, 1, 0, kEcx);
  const auto bits_7b = value_of(dump, 7, 0, kEbx);
  const auto bits_7d = value_of(dump, 7, 0, kEdx);
  const auto bits_71 = value_of(dump, 7, 1, kEax);
  const auto all = [](uint32_t bits, std::initializer_list<int> wanted) {
    return std::all_of(wanted.begin(), wanted.end(), [&](int bit) { return bits >> bit & 1; });
  };
  const auto offered =
      value_of(dump, 0xD, 0, kEax) | static_cast<uint64_t>(value_of(dump, 0xD, 0, kEdx)) << 32;
  const auto saved = dump.xcr0.value_or(offered);
  const auto saves = [&](uint64_t state) { return (saved & state) == state; };

  processor.avx = all(bits_1c, {28}) && saves(kAvxState);
  processor.avx2 = processor.avx && all(bits_1c, {12}) && all(bits_7b, {5});
  processor.avx512 = processor.avx2 && all(bits_7b, {16, 17, 28, 30, 31}) && saves(kAvx512State);
  processor.avx512_bf16 = processor.avx512 && all(bits_71, {5});
  processor.avx512_fp16 = processor.avx512 && all(bits_7d, {23});
  processor.amx_bf16 = all(bits_7d, {22, 24});
  processor.amx_described = value_of(dump, 0x1D, 0, kEax) > 0 && saves(kTileState);
  return processor;
}

std::string extensions_text(const Processor& processor) {
  std::string text;
  const auto add = [&](bool has, const char* name) {
    if (has) {
      text.append(text.empty() ? "" : " ").append(name);
    }
  };
  add(processor.avx, "avx");
  add(processor.avx2, "avx2");
  add(processor.avx512, "avx512");
  add(processor.avx512_bf16, "avx512_bf16");
  add(processor.avx512_fp16, "avx512_fp16");
  add(processor.amx_bf16 && processor.amx_described, "amx_bf16");
  add(processor.amx_bf16 && !processor.amx_described,
      "amx_bf16 (without tiles: hidden or switched off)");
  return text.empty() ? "none" : text;
}

}  // namespace theseus::machine
