// The main function of all test programs. A case that runs for longer than five minutes ends the
// program, or than FOVEA_TEST_CASE_SECONDS says, for processors that are emulated. The file that
// FOVEA_TEST_RECORD names tells which cases started and how each ended, also if the program died:
// scripts/stages.sh counts them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace {

unsigned seconds_of_a_case() {
  const char* const text = std::getenv("FOVEA_TEST_CASE_SECONDS");
  return text == nullptr ? 300 : static_cast<unsigned>(std::stoul(text));
}

/// Handles SIGALRM, so it calls functions only that are safe in a signal handler.
void end_program(int /*signal*/) {
  constexpr std::string_view message =
      "\nThe case that runs has taken too long: the program ends.\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message.data(), message.size());
  std::abort();
}

/// Writes a line per event, and keeps no file open: cases count the descriptors of their process.
class CaseRecord : public testing::EmptyTestEventListener {
 public:
  /// Empties the file. Without a path it records nothing.
  explicit CaseRecord(const char* path)
      : path_(path == nullptr ? "" : path), seconds_of_a_case_(seconds_of_a_case()) {
    if (!path_.empty()) std::ofstream{path_};
  }

  void OnTestStart(const testing::TestInfo& info) override {
    note("started", info);
    ::alarm(seconds_of_a_case_);
  }
  void OnTestEnd(const testing::TestInfo& info) override {
    ::alarm(0);
    const testing::TestResult& result = *info.result();
    note(result.Failed() ? "failed" : result.Skipped() ? "skipped" : "passed", info);
  }

 private:
  void note(std::string_view event, const testing::TestInfo& info) const {
    if (path_.empty()) return;
    std::ofstream(path_, std::ios::app)
        << event << ' ' << info.test_suite_name() << '.' << info.name() << '\n';
  }

  std::string path_;
  unsigned seconds_of_a_case_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  std::signal(SIGALRM, end_program);
  testing::UnitTest::GetInstance()->listeners().Append(
      new CaseRecord(std::getenv("FOVEA_TEST_RECORD")));  // GoogleTest deletes it
  return RUN_ALL_TESTS();
}
