#include "console.h"

#include <gtest/gtest.h>

#include <functional>

#include "cli/terminal.h"

namespace fovea::cli {
namespace {

using test::Terminal;

/// What a console writes to a stderr that is no terminal.
std::string written(const std::function<void(Console&)>& use) {
  ::testing::internal::CaptureStderr();
  Console console;
  use(console);
  return ::testing::internal::GetCapturedStderr();
}

TEST(Console, MessagesAreOneLineWithTheirKind) {
  EXPECT_EQ(written([](Console& console) {
              console.warn("first\nsecond");
              console.error("third\n");
              console.write(LogLevel::kError, "fourth");
            }),
            "fovea: warning: first second\nfovea: error: third\nfovea: error: fourth\n");
}

TEST(Console, LongMessagesKeepBothEnds) {
  const std::string line = written(
      [](Console& console) { console.error("start " + std::string(200'000, 'x') + " end"); });
  EXPECT_LT(line.size(), 5'000u);
  EXPECT_TRUE(line.starts_with("fovea: error: start x"));
  EXPECT_TRUE(line.ends_with("x end\n"));
}

TEST(Console, LogLinesBelowTheLevelAreDropped) {
  const auto all_levels = [](Console& console) {
    console.write(LogLevel::kDebug, "d");
    console.write(LogLevel::kInfo, "i");
    console.write(LogLevel::kWarning, "w");
  };
  EXPECT_EQ(written(all_levels), "fovea: warning: w\n");
  EXPECT_EQ(written([&](Console& console) {
              console.set_level(LogLevel::kInfo);
              all_levels(console);
            }),
            "fovea: info: i\nfovea: warning: w\n");
}

TEST(Console, WantsTheLevelsThatItWrites) {
  Console console;
  EXPECT_FALSE(console.wants(LogLevel::kInfo));
  EXPECT_TRUE(console.wants(LogLevel::kWarning));
  console.set_level(LogLevel::kDebug);
  EXPECT_TRUE(console.wants(LogLevel::kDebug));
  console.be_quiet();
  EXPECT_FALSE(console.wants(LogLevel::kWarning));
  EXPECT_TRUE(console.wants(LogLevel::kError));
}

TEST(Console, AWarningOfTheLibraryIsGivenOnce) {
  EXPECT_EQ(written([](Console& console) {
              for (const char* line : {"a", "b", "a"}) console.write(LogLevel::kWarning, line);
            }),
            "fovea: warning: a\nfovea: warning: b\n");
}

TEST(Console, QuietLeavesTheMessagesOfTheProgram) {
  EXPECT_EQ(written([](Console& console) {
              console.be_quiet();
              console.set_level(LogLevel::kDebug);
              console.write(LogLevel::kWarning, "of the library");
              console.warn("w");
              console.error("e");
            }),
            "fovea: warning: w\nfovea: error: e\n");
}

TEST(Console, AStatusIsForTerminalsOnly) {
  EXPECT_EQ(written([](Console& console) { console.set_status("loading"); }), "");
}

TEST(Console, AStatusIsReplacedAndRemoved) {
  const Terminal terminal;
  Console console;
  console.set_status("one");
  console.set_status("two");
  EXPECT_EQ(terminal.text(), std::string("one") + test::kErase + "two");
  console.set_status("");
  EXPECT_EQ(terminal.text(), test::kErase);
}

TEST(Console, AStatusFitsOnOneLineOfTheTerminal) {
  const Terminal terminal;
  Console console;
  console.set_status(std::string(200, 'x'));
  EXPECT_EQ(terminal.text(), std::string(79, 'x'));  // a new terminal has no size; 80 are usual
}

}  // namespace
}  // namespace fovea::cli
