#include "core/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <string_view>

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

using test::read_text;
using test::TemporaryDirectory;
using test::write_text;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// Lets this process write no file beyond a size, as a full disk would.
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

TEST(Paths, TellFilesFromDirectoriesAndNothing) {
  const TemporaryDirectory folder;
  test::write_text(folder / "file", "");
  EXPECT_TRUE(path_exists(folder / "file"));
  EXPECT_FALSE(directory_exists(folder / "file"));
  EXPECT_TRUE(path_exists(folder.path()));
  EXPECT_TRUE(directory_exists(folder.path()));
  EXPECT_FALSE(path_exists(folder / "absent"));
  EXPECT_FALSE(directory_exists(folder / "absent"));
}

TEST(Paths, OfTooLongNamesAreAbsent) {
  EXPECT_FALSE(path_exists(std::string(5000, 'x')));
  EXPECT_FALSE(directory_exists(std::string(5000, 'x')));
}

TEST(ListDirectory, NamesTheEntriesInOrder) {
  const TemporaryDirectory folder;
  EXPECT_TRUE(list_directory(folder.path()).empty());
  for (const char* name : {"c", "a", "b"}) test::write_text(folder / name, "");
  EXPECT_EQ(list_directory(folder.path()), (std::vector<std::string>{"a", "b", "c"}));
}

TEST(ListDirectory, GivesTheSystemsReason) {
  const TemporaryDirectory folder;
  test::expect_error(ErrorCode::kIo, "absent: cannot list: No such file",
                     [&] { (void)list_directory(folder / "absent"); });
}

TEST(ReadFile, GivesTheBytes) {
  const TemporaryDirectory folder;
  const std::string text("a\0b\xff", 4);
  test::write_text(folder / "file", text);
  const std::vector<std::uint8_t> bytes = read_file(folder / "file", 4);
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), text);
}

TEST(ReadFile, OfAnEmptyFileIsEmpty) {
  const TemporaryDirectory folder;
  test::write_text(folder / "file", "");
  EXPECT_TRUE(read_file(folder / "file", 0).empty());
}

TEST(ReadFile, RefusesAFileAboveTheLimit) {
  const TemporaryDirectory folder;
  test::write_text(folder / "file", "12345");
  test::expect_error(ErrorCode::kInvalidArgument, "file: file has 5 bytes, at most 4",
                     [&] { (void)read_file(folder / "file", 4); });
}

TEST(ReadFile, SaysThatAFileIsAbsent) {
  const TemporaryDirectory folder;
  test::expect_error(ErrorCode::kNotFound, "absent: no such file",
                     [&] { (void)read_file(folder / "absent", 1); });
  test::write_text(folder / "file", "");
  test::expect_error(ErrorCode::kNotFound, "file/inner: no such file",
                     [&] { (void)read_file(folder / "file/inner", 1); });
}

TEST(ReadFile, RefusesADirectory) {
  const TemporaryDirectory folder;
  test::expect_error(ErrorCode::kIo, "not a regular file",
                     [&] { (void)read_file(folder.path(), 1); });
}

TEST(ReadFile, RefusesAPipeWithoutWaitingForAWriter) {
  const TemporaryDirectory folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  test::expect_error(ErrorCode::kIo, "pipe: not a regular file",
                     [&] { (void)read_file(folder / "pipe", 1); });
}

TEST(ReadFile, GivesTheSystemsReason) {
  const TemporaryDirectory folder;
  const std::string too_long(300, 'x');
  test::expect_error(ErrorCode::kIo, "cannot open: File name too long",
                     [&] { (void)read_file(folder / too_long, 1); });
}

TEST(AtomicFile, AppearsOnCommitOnly) {
  const TemporaryDirectory folder;
  AtomicFile file(folder / "out");
  file.write(bytes_of("first "));
  file.write(bytes_of("second"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  file.commit();
  EXPECT_EQ(test::read_text(folder / "out"), "first second");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(AtomicFile, MayBeEmpty) {
  const TemporaryDirectory folder;
  AtomicFile file(folder / "out");
  file.write({});
  file.commit();
  EXPECT_EQ(test::read_text(folder / "out"), "");
  EXPECT_TRUE(std::filesystem::exists(folder / "out"));
}

TEST(AtomicFile, ReplacesAnOlderFile) {
  const TemporaryDirectory folder;
  test::write_text(folder / "out", "old and longer");
  AtomicFile file(folder / "out");
  file.write(bytes_of("new"));
  EXPECT_EQ(test::read_text(folder / "out"), "old and longer");
  file.commit();
  EXPECT_EQ(test::read_text(folder / "out"), "new");
}

TEST(ReplaceFile, MakesTheFoldersAndReplacesAnOlderFile) {
  const TemporaryDirectory folder;
  const std::string path = folder / "made/when/needed/file";
  replace_file(path, "old");
  EXPECT_EQ(read_text(path), "old");
  replace_file(path, "new");
  EXPECT_EQ(read_text(path), "new");
  EXPECT_EQ(list_directory(folder / "made/when/needed"), std::vector<std::string>{"file"});
}

TEST(ReplaceFile, SaysWhyItCannot) {
  const TemporaryDirectory folder;
  write_text(folder / "file", "no folder");
  try {
    replace_file(folder / "file/below", "text");
    FAIL() << "written below a file";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_NE(std::string(error.what()).find("file/below"), std::string::npos) << error.what();
  }
}

TEST(AtomicFile, LeavesTheOldFileWithoutCommit) {
  const TemporaryDirectory folder;
  test::write_text(folder / "out", "old");
  {
    AtomicFile file(folder / "out");
    file.write(bytes_of("new"));
  }
  EXPECT_EQ(test::read_text(folder / "out"), "old");
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
  EXPECT_EQ(test::read_text(folder / "out"), "first");
  second.commit();
  EXPECT_EQ(test::read_text(folder / "out"), "second");
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
  test::expect_error(ErrorCode::kIo, "out: cannot write: File too large", [&] {
    AtomicFile file(folder / "out");
    file.write(bytes_of(text));
    file.commit();
  });
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(AtomicFile, ReportsAMissingDirectory) {
  const TemporaryDirectory folder;
  test::expect_error(ErrorCode::kIo,
                     "absent/out: cannot create a temporary file beside it: No such",
                     [&] { AtomicFile file(folder / "absent/out"); });
}

TEST(AtomicFile, ReportsThatADirectoryHasItsName) {
  const TemporaryDirectory folder;
  std::filesystem::create_directory(folder / "out");
  test::expect_error(ErrorCode::kIo, "out: cannot rename the temporary file: Is a directory",
                     [&] { AtomicFile(folder / "out").commit(); });
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(AtomicFile, RefusesToGoOnAfterCommit) {
  const TemporaryDirectory folder;
  AtomicFile file(folder / "out");
  file.commit();
  test::expect_error(ErrorCode::kInternal, "written after commit",
                     [&] { file.write(bytes_of("late")); });
  test::expect_error(ErrorCode::kInternal, "committed twice", [&] { file.commit(); });
}

}  // namespace
}  // namespace fovea
