#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace fovea::test {

/// How many times as many cases to try as a test asks for: FOVEA_PROPERTY_FACTOR, for a long search
/// by hand.
[[nodiscard]] inline int property_factor() {
  const char* const factor = std::getenv("FOVEA_PROPERTY_FACTOR");
  return factor == nullptr ? 1 : std::max(std::atoi(factor), 1);
}

/// Checks a property of random inputs: check(generator) for `cases` generators seeded with the case
/// number, which a failure prints. A failing case becomes a named test of its own.
template <class Check>
void for_all(int cases, Check&& check) {
  for (int seed = 0; seed < cases * property_factor(); ++seed) {
    SCOPED_TRACE(::testing::Message() << "case " << seed);
    std::mt19937_64 generator(static_cast<std::uint64_t>(seed));
    check(generator);
    if (::testing::Test::HasFailure()) return;
  }
}

/// A number in [low, high].
template <class Generator>
std::int64_t uniform(Generator& generator, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(generator);
}

/// Bytes of chance, four by each number of the generator: a number takes far longer than a byte.
[[nodiscard]] inline std::vector<std::uint8_t> random_bytes(std::size_t size,
                                                            std::mt19937& random) {
  std::vector<std::uint32_t> numbers(size / 4 + 1);
  for (std::uint32_t& number : numbers) number = static_cast<std::uint32_t>(random());
  std::vector<std::uint8_t> bytes(size);
  std::memcpy(bytes.data(), numbers.data(), size);
  return bytes;
}

}  // namespace fovea::test
