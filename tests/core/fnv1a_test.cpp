#include "core/fnv1a.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(Fnv1a, GivesThePublishedHashes) {  // of the authors' test suite
  static_assert(fnv1a("") == 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
}

TEST(Mix64, GivesTheNumbersOfSplitMix64) {  // whose state after one step from 0 this is
  static_assert(mix64(0) == 0);
  EXPECT_EQ(mix64(0x9e3779b97f4a7c15u), 0xe220a8397b1dcdafu);
}

}  // namespace
}  // namespace fovea
