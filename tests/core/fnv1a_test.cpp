#include "core/fnv1a.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(Fnv1a, GivesThePublishedHashes) {  // of the authors' test suite
  static_assert(fnv1a("") == 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
}

}  // namespace
}  // namespace fovea
