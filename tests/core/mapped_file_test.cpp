#include "core/mapped_file.h"

#include <gtest/gtest.h>

#include <utility>

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

using test::TemporaryDirectory;

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(MappedFile, ShowsTheBytes) {
  const TemporaryDirectory folder;
  test::write_text(folder / "file", "some bytes");
  EXPECT_EQ(text_of(MappedFile(folder / "file")), "some bytes");
}

TEST(MappedFile, OfZeroBytesIsEmpty) {
  const TemporaryDirectory folder;
  test::write_text(folder / "file", "");
  EXPECT_TRUE(MappedFile(folder / "file").bytes().empty());
}

TEST(MappedFile, SaysThatAFileIsAbsent) {
  const TemporaryDirectory folder;
  test::expect_error(ErrorCode::kNotFound, "absent: no such file",
                     [&] { MappedFile file(folder / "absent"); });
}

TEST(MappedFile, RefusesADirectory) {
  const TemporaryDirectory folder;
  test::expect_error(ErrorCode::kIo, "not a regular file", [&] { MappedFile file(folder.path()); });
}

TEST(MappedFile, StaysReadableAfterItsNameIsGone) {
  const TemporaryDirectory folder;
  test::write_text(folder / "file", "kept");
  const MappedFile file(folder / "file");
  std::filesystem::remove(folder / "file");
  EXPECT_EQ(text_of(file), "kept");
}

TEST(MappedFile, MovesWithoutMovingTheBytes) {
  const TemporaryDirectory folder;
  test::write_text(folder / "a", "first");
  test::write_text(folder / "b", "second");
  MappedFile a(folder / "a");
  const std::byte* const address = a.bytes().data();
  MappedFile moved(std::move(a));
  EXPECT_EQ(moved.bytes().data(), address);
  MappedFile other(folder / "b");
  other = std::move(moved);
  EXPECT_EQ(text_of(other), "first");
}

}  // namespace
}  // namespace fovea
