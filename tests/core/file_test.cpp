#include "core/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <span>

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

using test::read_text;
using test::TemporaryDirectory;
using test::write_text;

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

TEST(Paths, EndAtNoNullByte) {
  const TemporaryDirectory folder;
  test::write_text(folder / "file", "text");
  const std::string end("\0.png", 5);
  EXPECT_FALSE(path_exists(folder / "file" + end));
  EXPECT_FALSE(directory_exists(folder.path() + end));
  test::expect_error(ErrorCode::kNotFound, "file?.png: no file has a null byte in its name",
                     [&] { (void)read_file(folder / "file" + end, 10); });
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

TEST(ReadFileStart, ReadsAsMuchAsAskedOrAll) {
  const TemporaryDirectory folder;
  write_text(folder / "file", "abcd");
  EXPECT_EQ(read_file_start(folder / "file", 2), (std::vector<std::uint8_t>{'a', 'b'}));
  EXPECT_EQ(read_file_start(folder / "file", 9), read_file(folder / "file", 4));
  test::expect_error(ErrorCode::kNotFound, "absent",
                     [&] { (void)read_file_start(folder / "absent", 1); });
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

TEST(ReadFile, SaysThatUrlsAreNotRead) {
  test::expect_error(ErrorCode::kNotFound, "https://host/a.png: URLs are not read, expected a path",
                     [] { (void)read_file("https://host/a.png", 1); });
  test::expect_error(ErrorCode::kNotFound, "folder/b://c: no such file",
                     [] { (void)read_file("folder/b://c", 1); });
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

TEST(InputFile, ReadsAnyPart) {
  const TemporaryDirectory folder;
  write_text(folder / "file", "0123456789");
  const InputFile file(folder / "file");
  std::string part(4, ' ');
  file.read_at(3, std::as_writable_bytes(std::span(part)));
  EXPECT_EQ(part, "3456");
  file.read_at(10, {});
}

TEST(InputFile, SaysThatTheFileShrank) {
  const TemporaryDirectory folder;
  write_text(folder / "file", "0123456789");
  const InputFile file(folder / "file");
  std::filesystem::resize_file(folder / "file", 5);
  std::string part(4, ' ');
  test::expect_error(ErrorCode::kIo,
                     "file: file ends after 5 of 10 bytes: it shrank while it was read",
                     [&] { file.read_at(3, std::as_writable_bytes(std::span(part))); });
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

}  // namespace
}  // namespace fovea
