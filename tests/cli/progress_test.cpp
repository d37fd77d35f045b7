#include "progress.h"

#include <gtest/gtest.h>

#include <chrono>

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

/// A clock that stands still until it is set forwards.
Progress::Clock::time_point moment{};
Progress::Clock::time_point now() { return moment; }
void pass(std::chrono::milliseconds time) { moment += time; }

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Progress, CountsUpToItsTotal) {
  const test::Terminal terminal;
  Console console;
  Progress progress(console, "encoding", 3, now);
  EXPECT_EQ(terminal.text(), "encoding 0/3");
  pass(milliseconds(100));
  progress.advance();
  EXPECT_EQ(terminal.text(), std::string(test::kErase) + "encoding 1/3");
  pass(milliseconds(100));
  progress.set(5, 8);
  EXPECT_EQ(terminal.text(), std::string(test::kErase) + "encoding 5/8");
}

TEST(Progress, IsNotShownMoreOftenThanItCanBeRead) {
  const test::Terminal terminal;
  Console console;
  Progress progress(console, "encoding", 3, now);
  (void)terminal.text();
  progress.advance();
  EXPECT_EQ(terminal.text(), "");
  progress.set(3, 3);
  EXPECT_EQ(terminal.text(), std::string(test::kErase) + "encoding 3/3") << "the end always is";
}

TEST(Progress, TellsTheRateAndTheTimeLeftFromWhatItSaw) {
  const test::Terminal terminal;
  Console console;
  Progress progress(console, "encoding", 1000, now);
  pass(milliseconds(500));
  progress.set(10, 1000);  // too early to tell
  EXPECT_TRUE(terminal.text().ends_with("encoding 10/1000"));
  pass(milliseconds(3500));
  progress.set(80, 1000);
  EXPECT_TRUE(terminal.text().ends_with("encoding 80/1000, 20.0/s, 46 s left"));
}

TEST(Progress, ForgetsHowFastItWasLongAgo) {
  const test::Terminal terminal;
  Console console;
  Progress progress(console, "encoding", 10'000, now);
  for (int i = 1; i <= 40; ++i) {
    pass(seconds(1));
    progress.set(100 * i, 10'000);
  }
  for (int i = 1; i <= 40; ++i) {
    pass(seconds(1));
    progress.set(4000 + 2 * i, 10'000);
  }
  EXPECT_TRUE(terminal.text().ends_with("encoding 4080/10000, 2.0/s, 49 min left"));
}

TEST(Progress, IsAPlainLineAMinuteWhereThereIsNoTerminal) {
  ::testing::internal::CaptureStderr();
  Console console;
  Progress progress(console, "encoding", 1000, now);
  for (int i = 1; i <= 125; ++i) {
    pass(seconds(1));
    progress.set(4 * i, 1000);
  }
  console.be_quiet();
  pass(seconds(61));
  progress.set(600, 1000);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "fovea: progress: encoding 240/1000, 4.0/s, 3 min left\n"
            "fovea: progress: encoding 480/1000, 4.0/s, 2 min left\n");
}

TEST(ProgressText, ChoosesUnitsThatCanBeRead) {
  EXPECT_EQ(progress_text({.done = 1, .total = 9}, 0), "1/9");
  EXPECT_EQ(progress_text({.done = 1, .total = 101}, 0.25), "1/101, 15.0/min, 7 min left");
  EXPECT_EQ(progress_text({.done = 0, .total = 36'000}, 1), "0/36000, 1.0/s, 10 h 0 min left");
  EXPECT_EQ(progress_text({.done = 0, .total = 1'000'000}, 1), "0/1000000, 1.0/s, 11 d 13 h left");
  EXPECT_EQ(progress_text({.done = 9, .total = 9}, 3), "9/9, 3.0/s");
}

}  // namespace
}  // namespace fovea::cli
