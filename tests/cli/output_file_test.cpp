#include "output_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "cli/expect_usage_error.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::cli {
namespace {

using fovea::test::expect_error;
using fovea::test::read_text;
using fovea::test::TemporaryDirectory;
using fovea::test::write_text;
using test::expect_usage_error;

TEST(OutputFile, AppearsAtCommitOnly) {
  const TemporaryDirectory folder;
  const std::string path = folder / "out.json";
  write_text(path, "old");
  PendingFile file(path, "new");
  EXPECT_EQ(read_text(path), "old");
  file.commit();
  EXPECT_EQ(read_text(path), "new");
  EXPECT_EQ(folder.entries(), 1U);
}

TEST(OutputFile, LeavesNoTraceWithoutCommit) {
  const TemporaryDirectory folder;
  { const PendingFile file(folder / "out.json", "new"); }
  EXPECT_EQ(folder.entries(), 0U);
}

TEST(OutputFile, MovedFileIsCommittedOnce) {
  const TemporaryDirectory folder;
  {
    PendingFile first(folder / "out.json", "text");
    PendingFile second(std::move(first));
    second.commit();
  }
  EXPECT_EQ(read_text(folder / "out.json"), "text");
}

TEST(OutputFile, MissingDirectoryIsFoundBeforehand) {
  const TemporaryDirectory folder;
  expect_error(ErrorCode::kIo, "does not exist",
               [&] { check_output_path((folder / "none") + "/out.json"); });
}

TEST(OutputFile, DirectoriesAndDevicesAreNotOverwritten) {
  const TemporaryDirectory folder;
  std::filesystem::create_directory(folder / "taken");
  expect_error(ErrorCode::kIo, "not a regular file", [&] { check_output_path(folder / "taken"); });
  expect_error(ErrorCode::kIo, "not a regular file", [] { check_output_path("/dev/null"); });
}

TEST(OutputFile, AllOutputsOfARunAreChecked) {
  const TemporaryDirectory folder;
  EXPECT_NO_THROW(check_output_paths({folder / "out.json", "", folder / "out.svg"}));
  expect_error(ErrorCode::kIo, "/none/out.svg: the directory", [&] {
    check_output_paths({folder / "out.json", (folder / "none") + "/out.svg"});
  });
}

TEST(OutputFile, TwoOutputsAreTwoFiles) {
  const TemporaryDirectory folder;
  const std::string path = folder / "out.json";
  const std::string other_name = folder.path() + "/./out.json";
  expect_usage_error("expected a file for each output", [&] {
    check_output_paths({path, other_name});
  });
  write_text(path, "old");
  expect_usage_error(other_name, [&] { check_output_paths({path, "", other_name}); });
}

TEST(OutputFile, ExistingFilesMayBeReplaced) {
  const TemporaryDirectory folder;
  write_text(folder / "out.json", "old");
  check_output_path(folder / "out.json");
  write_text_file(folder / "out.json", "new");
  EXPECT_EQ(read_text(folder / "out.json"), "new");
}

TEST(OutputFile, WritingIntoNowhereNamesThePath) {
  const TemporaryDirectory folder;
  expect_error(ErrorCode::kIo, "out.json",
               [&] { write_text_file((folder / "none") + "/out.json", "text"); });
}

TEST(OutputFile, ReadingAMissingFileNamesIt) {
  expect_error(ErrorCode::kNotFound, "/nonexistent/list",
               [] { (void)read_text_file("/nonexistent/list"); });
}

}  // namespace
}  // namespace fovea::cli
