#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace fovea::test {

/// Checks a property of random inputs: check(generator) for `cases` generators seeded with the case
/// number, which a failure prints. A failing case becomes a named test of its own.
template <class Check>
void for_all(int cases, Check&& check) {
  for (int seed = 0; seed < cases; ++seed) {
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
