#include "progress.h"

#include <gtest/gtest.h>

#include "cli/terminal.h"

namespace fovea::cli {
namespace {

TEST(Progress, ShowsTheLabelAtOnceAndRemovesItAtTheEnd) {
  const test::Terminal terminal;
  Console console;
  {
    const Progress progress(console, "loading");
    EXPECT_EQ(terminal.text(), "loading");
  }
  EXPECT_EQ(terminal.text(), test::kErase);
}

TEST(Progress, CountsUpToItsTotal) {
  const test::Terminal terminal;
  Console console;
  Progress progress(console, "encoding", 3);
  EXPECT_EQ(terminal.text(), "encoding 0/3");
  progress.advance();
  EXPECT_EQ(terminal.text(), std::string(test::kErase) + "encoding 1/3");
  progress.set(5, 8);
  EXPECT_EQ(terminal.text(), std::string(test::kErase) + "encoding 5/8");
}

}  // namespace
}  // namespace fovea::cli
