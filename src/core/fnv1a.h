#pragma once

#include <cstdint>
#include <string_view>

namespace fovea {

/// Hash of a text, the same in every process and on every machine. Not for texts that an attacker
/// chooses: collisions are easy to make.
/// Source: docs/reference/README.md, "Hash functions" (FNV-1a, 64 bits).
[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

/// Spreads every bit of the input over all bits; one to one.
/// Source: docs/reference/README.md, "Hash functions" (SplitMix64, its last step).
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace fovea
