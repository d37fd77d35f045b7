#include "output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

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
  AtomicFile file = prepare_text_file(path, "new");
  EXPECT_EQ(read_text(path), "old");
  file.commit();
  EXPECT_EQ(read_text(path), "new");
  EXPECT_EQ(folder.entries(), 1U);
}

TEST(OutputFile, AllOutputsOfARunAreChecked) {
  const TemporaryDirectory folder;
  EXPECT_NO_THROW(check_output_paths({folder / "out.json", "", folder / "out.svg"}, {}));
  expect_error(ErrorCode::kIo, "/none/out.svg: the directory", [&] {
    check_output_paths({folder / "out.json", (folder / "none") + "/out.svg"}, {});
  });
  expect_error(ErrorCode::kIo, "not a regular file",
               [&] { check_output_paths({folder.path()}, {}); });
}

TEST(OutputFile, TwoOutputsAreTwoFiles) {
  const TemporaryDirectory folder;
  const std::string path = folder / "out.json";
  const std::string other_name = folder.path() + "/./out.json";
  expect_usage_error("expected a file for each output", [&] {
    check_output_paths({path, other_name}, {});
  });
  std::filesystem::create_symlink("out.json", folder / "link");
  expect_usage_error("link: expected a file for each output", [&] {
    check_output_paths({path, folder / "link"}, {});
  });
  write_text(path, "old");
  expect_usage_error(other_name, [&] { check_output_paths({path, "", other_name}, {}); });
}

TEST(OutputFile, AnOutputIsNoInputUnderAnyName) {
  const TemporaryDirectory folder;
  const std::vector<std::string> inputs{folder / "in.png", folder / "absent"};
  write_text(inputs[0], "image");
  std::filesystem::create_symlink("in.png", folder / "symbolic");
  std::filesystem::create_hard_link(inputs[0], folder / "hard");
  for (const char* name : {"in.png", "./in.png", "symbolic", "hard"}) {
    expect_usage_error(std::string(name) +
                           ": expected a file of its own for the output, got the "
                           "input " +
                           inputs[0],
                       [&] {
                         check_output_paths({folder / "new", folder / name}, inputs);
                       });
  }
  EXPECT_NO_THROW(check_output_paths({folder / "new", folder / "absent"}, inputs));
}

TEST(OutputFile, ExistingFilesMayBeReplaced) {
  const TemporaryDirectory folder;
  write_text(folder / "out.json", "old");
  write_text_file(folder / "out.json", "new");
  EXPECT_EQ(read_text(folder / "out.json"), "new");
}

TEST(OutputFile, WritingIntoNowhereNamesThePath) {
  const TemporaryDirectory folder;
  expect_error(ErrorCode::kIo, "out.json",
               [&] { write_text_file((folder / "none") + "/out.json", "text"); });
}

}  // namespace
}  // namespace fovea::cli
