#include "fovea/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string_view>
#include <vector>

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

using test::expect_error;
using test::read_text;
using test::TemporaryDirectory;
using test::write_text;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// Limits how large a file this process can write, as a full disk would.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    (void)std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST(AtomicFile, AppearsOnCommitOnly) {
  const TemporaryDirectory folder;
  AtomicFile file(folder / "out");
  file.write(bytes_of("first "));
  file.write(bytes_of("second"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  file.commit();
  EXPECT_EQ(read_text(folder / "out"), "first second");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(AtomicFile, MayBeEmpty) {
  const TemporaryDirectory folder;
  AtomicFile file(folder / "out");
  file.write({});
  file.commit();
  EXPECT_EQ(read_text(folder / "out"), "");
  EXPECT_TRUE(std::filesystem::exists(folder / "out"));
}

TEST(AtomicFile, ReplacesAnOlderFile) {
  const TemporaryDirectory folder;
  write_text(folder / "out", "old and longer");
  AtomicFile file(folder / "out");
  file.write(bytes_of("new"));
  EXPECT_EQ(read_text(folder / "out"), "old and longer");
  file.commit();
  EXPECT_EQ(read_text(folder / "out"), "new");
}

TEST(AtomicFile, LeavesTheOldFileWithoutCommit) {
  const TemporaryDirectory folder;
  write_text(folder / "out", "old");
  {
    AtomicFile file(folder / "out");
    file.write(bytes_of("new"));
  }
  EXPECT_EQ(read_text(folder / "out"), "old");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const TemporaryDirectory folder;
  { AtomicFile(folder / "out").write(bytes_of("new")); }
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(AtomicFile, GivesTwoWritersOfOneNameFilesOfTheirOwn) {
  const TemporaryDirectory folder;
  AtomicFile first(folder / "out");
  AtomicFile second(folder / "out");
  first.write(bytes_of("first"));
  second.write(bytes_of("second"));
  first.commit();
  EXPECT_EQ(read_text(folder / "out"), "first");
  second.commit();
  EXPECT_EQ(read_text(folder / "out"), "second");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(AtomicFile, TakesANameOfTheGreatestLength) {
  const TemporaryDirectory folder;
  const std::string name(255, 'x');
  AtomicFile file(folder / name);
  file.commit();
  EXPECT_TRUE(std::filesystem::exists(folder / name));
}

TEST(AtomicFile, HasTheUsualPermissions) {
  const TemporaryDirectory folder;
  const mode_t mask = umask(022);
  AtomicFile(folder / "out").commit();
  umask(mask);
  struct stat status {};
  ASSERT_EQ(stat((folder / "out").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0644u);
}

TEST(AtomicFile, ReportsAFullDiskAndLeavesNoFile) {
  const TemporaryDirectory folder;
  constexpr std::size_t kDiskBytes = 10000;
  const std::string text(2 * kDiskBytes, 'x');
  const FileSizeLimit limit(kDiskBytes);
  expect_error(ErrorCode::kIo, "out: cannot write: File too large", [&] {
    AtomicFile file(folder / "out");
    file.write(bytes_of(text));
    file.commit();
  });
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(AtomicFile, ReportsAMissingDirectory) {
  const TemporaryDirectory folder;
  expect_error(ErrorCode::kIo, "absent/out: the directory ",
               [&] { AtomicFile file(folder / "absent/out"); });
}

TEST(AtomicFile, RefusesNamesThatNoFileHas) {
  const TemporaryDirectory folder;
  expect_error(ErrorCode::kIo, "cannot write to a file without a name", [] { AtomicFile(""); });
  expect_error(ErrorCode::kIo, "rows?b: no file has a null byte in its name",
               [&] { AtomicFile(folder / "rows" + std::string("\0b", 2)); });
}

TEST(AtomicFile, ReportsThatADirectoryHasItsName) {
  const TemporaryDirectory folder;
  std::filesystem::create_directory(folder / "out");
  expect_error(ErrorCode::kIo, "out: not a regular file", [&] { AtomicFile(folder / "out"); });
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(AtomicFile, ReplacesWhatALinkLeadsToAndKeepsTheLink) {
  const TemporaryDirectory folder;
  std::filesystem::create_directory(folder / "data");
  write_text(folder / "data/file", "old");
  std::filesystem::create_symlink("file", folder / "data/inner");
  std::filesystem::create_symlink("data/inner", folder / "out");
  std::filesystem::create_symlink(folder / "data/new", folder / "dangling");
  AtomicFile file(folder / "out");
  file.write(bytes_of("new"));
  file.commit();
  AtomicFile(folder / "dangling").commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "out"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "data/inner"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "dangling"));
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "data/file"));
  EXPECT_EQ(read_text(folder / "data/file"), "new");
  EXPECT_TRUE(std::filesystem::exists(folder / "data/new"));
}

TEST(AtomicFile, RefusesLinksToWhatIsNoFile) {
  const TemporaryDirectory folder;
  std::filesystem::create_symlink("/dev/null", folder / "device");
  std::filesystem::create_symlink("/proc/self/fd/1", folder / "stream");
  std::filesystem::create_symlink("circle", folder / "circle");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const char* name : {"device", "stream", "pipe"}) {
    expect_error(ErrorCode::kIo, std::string(name) + ": not a regular file",
                 [&] { AtomicFile file(folder / name); });
  }
  expect_error(ErrorCode::kIo, "circle: ", [&] { AtomicFile file(folder / "circle"); });
  EXPECT_EQ(folder.entries(), 4u);
}

TEST(AtomicFile, LeavesNothingWhenTheProcessIsKilled) {
  const TemporaryDirectory folder;
  const int probe = open(folder.path().c_str(), O_WRONLY | O_TMPFILE, 0600);
  if (probe < 0) GTEST_SKIP() << "the file system has no files without names";
  close(probe);
  const pid_t child = fork();
  if (child == 0) {
    AtomicFile file(folder / "out");
    file.write(bytes_of("new"));
    (void)raise(SIGKILL);
  }
  ASSERT_GT(child, 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(AtomicFile, TakesANewNameWithoutATemporaryOne) {
  const TemporaryDirectory folder;
  constexpr int kNamesTried = 1000;
  for (int i = 0; i < kNamesTried; ++i)
    write_text(folder / (".fovea-" + std::to_string(getpid()) + "-" + std::to_string(i) + ".tmp"),
               "");
  AtomicFile(folder / "out").commit();
  EXPECT_TRUE(std::filesystem::exists(folder / "out"));
}

/// The number of a process that has ended.
pid_t ended_process() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

TEST(RemoveTemporaries, RemovesWhatAKilledProcessLeft) {
  const TemporaryDirectory folder;
  const std::string left = folder / (".fovea-" + std::to_string(ended_process()) + "-0.tmp");
  const std::string ours = folder / (".fovea-" + std::to_string(getpid()) + "-0.tmp");
  write_text(left, "");
  write_text(ours, "");
  remove_temporaries(folder.path());
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(ours));
  remove_temporaries(folder / "none");
}

TEST(AtomicFile, RemovesWhatAKilledProcessLeft) {
  const TemporaryDirectory folder;
  const std::string left = folder / (".fovea-" + std::to_string(ended_process()) + "-0.tmp");
  write_text(left, "half a file");
  write_text(folder / "out", "old");
  AtomicFile(folder / "out").commit();
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(AtomicFile, LeavesFilesThatMayBeInUse) {
  const TemporaryDirectory folder;
  const std::string ended = std::to_string(ended_process());
  const std::string of_parent = ".fovea-" + std::to_string(getppid()) + "-0.tmp";
  const std::string locked = ".fovea-" + ended + "-1.tmp";  // by a process of another machine
  const std::vector<std::string> names{of_parent,     locked,          ".fovea-" + ended + "-2.txt",
                                       ".fovea-.tmp", ".fovea-1x.tmp", "out"};
  for (const std::string& name : names) write_text(folder / name, "text");
  std::filesystem::create_symlink("out", folder / (".fovea-" + ended + "-3.tmp"));
  const int writer = open((folder / locked).c_str(), O_WRONLY);
  ASSERT_EQ(flock(writer, LOCK_EX), 0);
  AtomicFile(folder / "out").commit();
  close(writer);
  EXPECT_EQ(folder.entries(), names.size() + 1);
}

TEST(AtomicFile, MovesWithItsText) {
  const TemporaryDirectory folder;
  {
    AtomicFile first(folder / "out");
    first.write(bytes_of("text"));
    first.flush();
    AtomicFile second(std::move(first));
    second.commit();
  }
  EXPECT_EQ(read_text(folder / "out"), "text");
}

TEST(AtomicFile, RefusesToGoOnAfterCommit) {
  const TemporaryDirectory folder;
  AtomicFile file(folder / "out");
  file.commit();
  expect_error(ErrorCode::kInternal, "written after commit", [&] { file.write(bytes_of("late")); });
  expect_error(ErrorCode::kInternal, "committed twice", [&] { file.commit(); });
}

}  // namespace
}  // namespace fovea
