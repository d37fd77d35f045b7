#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>

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

}  // namespace fovea::test
