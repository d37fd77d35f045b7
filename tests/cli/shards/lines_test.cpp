#include "shards/lines.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::cli {
namespace {

using fovea::test::expect_error;
using fovea::test::TemporaryDirectory;
using fovea::test::write_text;

TEST(LineReader, ReturnsEveryLineAndWhetherItIsWhole) {
  const TemporaryDirectory folder;
  write_text(folder / "lines", "a\n\nbc\nd");
  LineReader lines(folder / "lines");
  EXPECT_EQ(lines.next(), "a");
  EXPECT_EQ(lines.end(), 2);
  EXPECT_EQ(lines.next(), "");
  EXPECT_EQ(lines.next(), "bc");
  EXPECT_TRUE(lines.whole());
  EXPECT_EQ(lines.next(), "d");
  EXPECT_FALSE(lines.whole());
  EXPECT_EQ(lines.number(), 4);
  EXPECT_EQ(lines.end(), 7);
  EXPECT_FALSE(lines.next());
}

TEST(LineReader, ReadsFilesLargerThanItsMemory) {
  const TemporaryDirectory folder;
  const std::string line(LineReader::kMaxLineBytes, 'x');
  std::string text;
  for (int i = 0; i < 40; ++i) text += line + "\n";
  write_text(folder / "lines", text);
  LineReader lines(folder / "lines");
  int count = 0;
  while (const auto next = lines.next()) count += *next == line ? 1 : 0;
  EXPECT_EQ(count, 40);
}

TEST(LineReader, RefusesALineThatIsTooLong) {
  const TemporaryDirectory folder;
  write_text(folder / "lines", "a\n" + std::string(LineReader::kMaxLineBytes + 1, 'x') + "\n");
  LineReader lines(folder / "lines");
  (void)lines.next();
  expect_error(ErrorCode::kCorruptData, "lines:2: expected a line of at most 64.0 KiB",
               [&] { (void)lines.next(); });
}

TEST(LineReader, RefusesWhatIsNoFile) {
  const TemporaryDirectory folder;
  expect_error(ErrorCode::kNotFound, "no such file", [&] { LineReader(folder / "none"); });
  expect_error(ErrorCode::kIo, "not a regular file", [&] { LineReader(folder.path()); });
}

}  // namespace
}  // namespace fovea::cli
