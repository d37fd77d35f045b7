#include "hub/download.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "core/file_descriptor.h"
#include "core/interrupt.h"
#include "hub/fake_hub.h"
#include "support/expect_error.h"

namespace fovea::hub {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::FakeHub;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::string kName = "model.safetensors";

/// A hub with one file, and a folder for it.
class HubDownload : public ::testing::Test {
 protected:
  HubDownload() : repository_({.endpoint = hub_.url()}, hub_.name) {
    std::string content;
    for (int i = 0; i < 100'000; ++i) content += static_cast<char>(i % 251 * (i % 251) % 251);
    hub_.add(kName, content);
  }

  [[nodiscard]] const std::string& content() const { return hub_.files.at(kName).content; }
  HubFile file() { return repository_.file({.commit = FakeHub::kCommit, .files = {kName}}, kName); }
  void get() { get(file()); }
  void get(const HubFile& file) {
    download(repository_, file, paths_, /*trusts_name=*/false,
             {.on_bytes = [this](std::uint64_t bytes) { last_bytes_ = bytes; }});
  }
  std::vector<std::string> downloads() { return hub_.requests("GET /" + hub_.name + "/resolve/"); }

  test::HubEnvironment environment_;
  FakeHub hub_;
  Repository repository_;
  test::TemporaryDirectory folder_;
  FilePaths paths_{.lock = folder_ / "locks/file.lock",
                   .partial = folder_ / "blobs/file.incomplete",
                   .final = folder_ / "blobs/file"};
  std::uint64_t last_bytes_ = 0;
};

TEST_F(HubDownload, BringsTheFileAndLeavesNothingElse) {
  get();
  EXPECT_EQ(test::read_text(paths_.final), content());
  EXPECT_FALSE(fs::exists(paths_.partial));
  EXPECT_EQ(last_bytes_, content().size());
}

TEST_F(HubDownload, WhatIsThereIsNotDownloadedAgain) {
  get();
  get();
  EXPECT_THAT(downloads(), SizeIs(1));
}

TEST_F(HubDownload, AFileOfAnotherContentIsReplaced) {
  fs::create_directories(fs::path(paths_.final).parent_path());
  test::write_text(paths_.final, std::string(content().size(), 'x'));
  get();
  EXPECT_EQ(test::read_text(paths_.final), content());
}

TEST_F(HubDownload, GoesOnWhereAnEarlierOneStopped) {
  fs::create_directories(fs::path(paths_.partial).parent_path());
  test::write_text(paths_.partial, content().substr(0, 40'000));
  get();
  EXPECT_EQ(test::read_text(paths_.final), content());
  ASSERT_THAT(downloads(), SizeIs(1));
  EXPECT_THAT(downloads()[0], HasSubstr("Range: bytes=40000-"));
}

TEST_F(HubDownload, ConnectionsThatBreakAreMadeAgain) {
  hub_.cuts = {10'000, 1, 50'000};
  get();
  EXPECT_EQ(test::read_text(paths_.final), content());
  ASSERT_THAT(downloads(), SizeIs(4));
  EXPECT_THAT(downloads()[3], HasSubstr("Range: bytes=60001-"));
}

TEST_F(HubDownload, RedirectsWithoutEndAreNotTriedAgain) {
  hub_.files.at(kName).location = file().url;
  expect_error(ErrorCode::kUnsupported, "redirects", [&] { get(); });
  EXPECT_THAT(downloads(), SizeIs(6));
}

TEST_F(HubDownload, BeginsAnewWhereTheHubKnowsNoRanges) {
  hub_.has_ranges = false;
  hub_.cuts = {10'000};
  get();
  EXPECT_EQ(test::read_text(paths_.final), content());
}

TEST_F(HubDownload, BytesThatWereThereBeforeAreNoReasonToGoOnAtOnce) {
  hub_.has_ranges = false;
  for (int i = 0; i < 100; ++i) hub_.cuts.push_back(i % 2 == 0 ? 20'000 : 10'000);
  const HubFile wanted = file();
  const auto end = Interrupt::Clock::now() + std::chrono::milliseconds(2500);
  const Interrupt interrupt(std::stop_token(), end, "pull");
  const InterruptScope scope(&interrupt);
  expect_error(ErrorCode::kDeadline, "", [&] { get(wanted); });
  EXPECT_THAT(downloads(), SizeIs(::testing::Le(3))) << "after 1 and 2 s";
}

TEST_F(HubDownload, BeginsAnewWhereTheBeginningIsNotThatOfTheFile) {
  fs::create_directories(fs::path(paths_.partial).parent_path());
  test::write_text(paths_.partial, std::string(40'000, 'x'));
  get();
  EXPECT_EQ(test::read_text(paths_.final), content());
}

TEST_F(HubDownload, ALeftoverThatIsTooLongIsNoBeginning) {
  fs::create_directories(fs::path(paths_.partial).parent_path());
  test::write_text(paths_.partial, content() + "more");
  get();
  EXPECT_EQ(test::read_text(paths_.final), content());
}

TEST_F(HubDownload, WhatIsNotTheFileNeverAppears) {
  hub_.files.at(kName).etag = std::string(64, 'a');
  expect_error(ErrorCode::kCorruptData, "are not those of the digest aaaa", [&] { get(); });
  EXPECT_FALSE(fs::exists(paths_.final));
  EXPECT_EQ(fs::file_size(paths_.partial), 0U);
}

TEST_F(HubDownload, MoreBytesThanTheHubSaidAreRefused) {
  HubFile short_file = file();
  short_file.size -= 1;
  expect_error(ErrorCode::kCorruptData, "more than the 99999 bytes", [&] { get(short_file); });
  EXPECT_FALSE(fs::exists(paths_.final));
}

TEST_F(HubDownload, ADiskWithoutRoomIsSaidBeforeAnyByte) {
  HubFile huge = file();
  huge.size = std::uint64_t{1} << 60;
  expect_error(ErrorCode::kIo, "expected room for 1152921504606846976 bytes", [&] { get(huge); });
  EXPECT_THAT(downloads(), SizeIs(0));
}

TEST_F(HubDownload, AFolderThatCannotBeWrittenIsNamed) {
  paths_.partial = "/proc/none/file.incomplete";
  expect_error(ErrorCode::kIo, paths_.partial + ": cannot write", [&] { get(); });
}

TEST_F(HubDownload, WaitsForAnotherProcessAndTakesItsFile) {
  fs::create_directories(fs::path(paths_.lock).parent_path());
  FileDescriptor lock(open(paths_.lock.c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_EQ(flock(lock.get(), LOCK_EX), 0);
  const HubFile wanted = file();
  std::atomic<bool> is_done = false;
  std::jthread waiter([&] {
    get(wanted);
    is_done = true;
  });
  fs::create_directories(fs::path(paths_.final).parent_path());
  EXPECT_FALSE(is_done);
  test::write_text(paths_.final, content());
  lock.reset();
  waiter.join();
  EXPECT_THAT(downloads(), SizeIs(0));
}

TEST_F(HubDownload, AStopEndsTheWaitForALock) {
  fs::create_directories(fs::path(paths_.lock).parent_path());
  const FileDescriptor lock(open(paths_.lock.c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_EQ(flock(lock.get(), LOCK_EX), 0);
  std::stop_source stop;
  stop.request_stop();
  const HubFile wanted = file();
  const Interrupt interrupt(stop.get_token(), Interrupt::Clock::time_point::max(), "pull");
  const InterruptScope scope(&interrupt);
  expect_error(ErrorCode::kCancelled, "", [&] { get(wanted); });
}

}  // namespace
}  // namespace fovea::hub
