// Which names match a pattern, and what a search costs at most.
#include "patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <stop_token>
#include <utility>

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::cli {
namespace {

using fovea::test::expect_error;
using fovea::test::TemporaryDirectory;
using fovea::test::write_text;
using ::testing::ElementsAre;

TEST(Patterns, MatchNamesAsAShellDoes) {
  for (const auto& [pattern, name] : {std::pair{"*", "a.png"},
                                      {"*.png", "a.b.png"},
                                      {"a*b*c", "abbbc"},
                                      {"?.png", "a.png"},
                                      {"[a-c]*", "b.png"},
                                      {"[!a]?", "ba"},
                                      {"[]]", "]"},
                                      {"[a", "[a"},
                                      {".*", ".hidden"},
                                      {"\\*", "*"},
                                      {"a**", "a"},
                                      {"[0-9]x", "7x"}}) {
    EXPECT_TRUE(matches(pattern, name)) << pattern << " " << name;
  }
  for (const auto& [pattern, name] : {std::pair{"*", ".hidden"},
                                      {"*.png", "a.jpg"},
                                      {"?.png", "ab.png"},
                                      {"[a-c]", "d"},
                                      {"[!a]", "a"},
                                      {"\\*", "a"},
                                      {"a*b", "abc"},
                                      {"", "a"},
                                      {"a", ""}}) {
    EXPECT_FALSE(matches(pattern, name)) << pattern << " " << name;
  }
}

TEST(Patterns, ManyStarsTakeNoTime) {
  std::string stars;
  for (int i = 0; i < 200; ++i) stars += "*a";
  EXPECT_TRUE(matches(stars, std::string(250, 'a')));
  EXPECT_FALSE(matches(stars + "b", std::string(250, 'a')));  // fnmatch(3) takes years
}

class Search : public ::testing::Test {
 protected:
  Search() {
    for (const char* folder : {"x", "y"}) {
      std::filesystem::create_directory(folder_ / folder);
      for (const char* name : {"a.png", "b.png"}) {
        write_text(folder_ / (std::string(folder) + "/" + name), "");
      }
    }
  }
  std::vector<std::string> files(const std::string& pattern, std::size_t max_entries = 100) {
    return PatternSearch(bounds_, max_entries).files(folder_ / pattern);
  }
  TemporaryDirectory folder_;
  CallBounds bounds_;
};

TEST_F(Search, GoesThroughDirectoriesThatMatch) {
  EXPECT_THAT(files("*/a.png"), ElementsAre(folder_ / "x/a.png", folder_ / "y/a.png"));
  EXPECT_THAT(files("?//[b].*"), ElementsAre(folder_ / "x//b.png", folder_ / "y//b.png"));
  EXPECT_THAT(files("*/"), ElementsAre(folder_ / "x/", folder_ / "y/"));
  expect_error(ErrorCode::kNotFound, "matches no file", [&] { (void)files("x/*.png/../a.png"); });
}

TEST_F(Search, NamesThePatternThatLooksAtTooMuch) {
  EXPECT_EQ(files("*/*", 6).size(), 4);
  expect_error(ErrorCode::kInvalidArgument, folder_ / "*/*: expected at most 5 files",
               [&] { (void)files("*/*", 5); });
}

TEST_F(Search, CountsForAllPatternsTogether) {
  PatternSearch search(bounds_, 5);
  (void)search.files(folder_ / "*");
  search.count_entries(folder_ / "x");
  expect_error(ErrorCode::kInvalidArgument, "y/*: expected at most 5 files",
               [&] { (void)search.files(folder_ / "y/*"); });
}

TEST_F(Search, EndsAtADeadlineOrWhenItIsStopped) {
  bounds_.deadline = std::chrono::steady_clock::now();
  expect_error(ErrorCode::kDeadline, "*/*: not done", [&] { (void)files("*/*"); });
  std::stop_source source;
  source.request_stop();
  bounds_ = {.stop = source.get_token()};
  expect_error(ErrorCode::kCancelled, "*/*: stopped", [&] { (void)files("*/*"); });
}

}  // namespace
}  // namespace fovea::cli
