#include "serve/http/request_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace fovea::serve {
namespace {

TEST(IsRequestId, TakesVisibleAsciiOfOneTo128Characters) {
  EXPECT_TRUE(is_request_id("a"));
  EXPECT_TRUE(is_request_id("!~\"{}"));
  EXPECT_TRUE(is_request_id(std::string(128, 'x')));
  for (const std::string& bad :
       {std::string(), std::string(129, 'x'), std::string("a b"), std::string("a\n"),
        std::string("\x7f"), std::string("\xc3\xa9")}) {
    EXPECT_FALSE(is_request_id(bad)) << bad;
  }
}

TEST(RequestIds, AreDifferent) {
  RequestIds one;
  RequestIds other;
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    for (RequestIds* ids : {&one, &other}) {
      const std::string id = ids->next();
      EXPECT_THAT(id, testing::MatchesRegex("fov-[0-9a-f]{32}"));
      seen.insert(id);
    }
  }
  EXPECT_EQ(seen.size(), 200u);
}

}  // namespace
}  // namespace fovea::serve
