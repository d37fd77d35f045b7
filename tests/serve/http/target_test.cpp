#include "serve/http/target.h"

#include <gtest/gtest.h>

#include "serve/api_error.h"

namespace fovea::serve {
namespace {

std::string path_of(std::string_view target) { return split_target(target).path; }

TEST(SplitTarget, DecodesThePathOnce) {
  EXPECT_EQ(path_of("/"), "/");
  EXPECT_EQ(path_of("/a%2Fb%2fc"), "/a/b/c");
  EXPECT_EQ(path_of("/%2541"), "/%41");
  EXPECT_EQ(path_of("/%e4%B8%ad"), "/\xe4\xb8\xad");
}

TEST(SplitTarget, LeavesTheQueryAsItCame) {
  EXPECT_EQ(split_target("/a?b=%20&c?d").query, "b=%20&c?d");
  EXPECT_EQ(split_target("/a?").query, "");
  EXPECT_EQ(split_target("/a%3fb").query, "");
  EXPECT_EQ(path_of("/a?b=%zz"), "/a");
}

TEST(SplitTarget, RefusesOthers) {
  for (const std::string_view target :
       {"",     "a",     "*",         "http://h/a", "?a",     "/%",   "/%4",
        "/%4g", "/%g4",  "/a%2",      "/%00",       "/%0a",   "/%7F", "/a b",
        "/a#b", "/\x7f", "/\xc3\xa9", "/a?\x01",    "/a?b c", "/% 1"}) {
    EXPECT_THROW((void)split_target(target), ApiError) << target;
  }
}

TEST(BelowRoot, CutsWholeSegments) {
  EXPECT_EQ(below_root("/a/b", ""), "/a/b");
  EXPECT_EQ(below_root("/a/b", "/a"), "/b");
  EXPECT_EQ(below_root("/a/", "/a"), "/");
  EXPECT_EQ(below_root("/a", "/a"), "/");
  EXPECT_EQ(below_root("/ab", "/a"), std::nullopt);
  EXPECT_EQ(below_root("/b", "/a"), std::nullopt);
  EXPECT_EQ(below_root("/", "/a"), std::nullopt);
}

}  // namespace
}  // namespace fovea::serve
