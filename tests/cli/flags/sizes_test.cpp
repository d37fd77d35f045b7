#include "flags/sizes.h"

#include <gtest/gtest.h>

#include "cli/expect_usage_error.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::cli {
namespace {

using fovea::test::TemporaryDirectory;
using fovea::test::write_text;
using test::expect_usage_error;

std::vector<std::string> texts(const std::vector<ItemSize>& sizes) {
  std::vector<std::string> result;
  for (const ItemSize& size : sizes) result.push_back(to_text(size));
  return result;
}

TEST(Sizes, ImagesAndVideosInOrder) {
  const std::vector<ItemSize> sizes = parse_sizes("640x480,1024x768x8f");
  ASSERT_EQ(sizes.size(), 2U);
  EXPECT_EQ(sizes[0].width_px, 640);
  EXPECT_EQ(sizes[0].height_px, 480);
  EXPECT_EQ(sizes[0].num_frames, 1);
  EXPECT_EQ(sizes[0].modality, Modality::kImage);
  EXPECT_EQ(sizes[1].width_px, 1024);
  EXPECT_EQ(sizes[1].height_px, 768);
  EXPECT_EQ(sizes[1].num_frames, 8);
  EXPECT_EQ(sizes[1].modality, Modality::kVideo);
}

TEST(Sizes, AVideoOfOneFrameStaysAVideo) {
  const ItemSize size = parse_size("96x64x1f");
  EXPECT_EQ(size.modality, Modality::kVideo);
  EXPECT_EQ(to_text(size), "96x64x1f");
}

TEST(Sizes, FilesMayHoldLinesAndComments) {
  const TemporaryDirectory folder;
  write_text(folder / "sizes.txt", "# traffic of a day\n640x480, 10x20\n\n  \n7x8x2f # a clip\r\n");
  EXPECT_EQ(texts(parse_sizes(std::string("@").append(folder / "sizes.txt"))),
            (std::vector<std::string>{"640x480", "10x20", "7x8x2f"}));
}

TEST(Sizes, MissingFileIsNotFound) {
  fovea::test::expect_error(ErrorCode::kNotFound, "none.txt",
                            [] { (void)parse_sizes("@/nonexistent/none.txt"); });
}

TEST(Sizes, RefusesWhatIsNoSize) {
  for (const char* text :
       {"", "640", "640x", "x480", "0x5", "640x480x8", "640x480xf", "axb", "640x480x8fx2", "-1x5",
        "640x480,", "64x64x", "99999999999999999999x5"}) {
    expect_usage_error("size \"", [&] { (void)parse_sizes(text); });
  }
}

}  // namespace
}  // namespace fovea::cli
