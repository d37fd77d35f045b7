#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/file.h"
#include "media/decode_image.h"
#include "media/interrupted.h"
#include "media/plugins/image_plugins.h"
#include "media/test_images.h"
#include "support/expect_error.h"
#include "support/media_profile_cases.h"

namespace fovea::media {
namespace {

using test::Bytes;
using test::decode;
using test::expect_error;

/// Files of the golden file by their names; Pillow's pixels are compared by image_formats_test.
class DecodeAvif : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const ImagePluginStatus& plugin : image_plugin_status())
      if (plugin.format == "avif" && plugin.text.starts_with("not used"))
        GTEST_SKIP() << plugin.text;
  }

  static Bytes file(const std::string& name) {
    const checkpoint::SafetensorsFile golden(FOVEA_TEST_SOURCE_DIR
                                             "/tests/media/formats.safetensors");
    return test::bytes_of_tensor(golden, name + ".avif");
  }
  /// The file with a number of 4 bytes, highest first, behind a word of its header.
  static Bytes with_number(const std::string& name, std::string_view word, std::size_t distance,
                           std::uint32_t value) {
    Bytes bytes = file(name);
    auto at = std::search(bytes.begin(), bytes.end(), word.begin(), word.end()) +
              static_cast<std::ptrdiff_t>(word.size() + distance);
    for (int shift = 24; shift >= 0; shift -= 8) *at++ = static_cast<std::uint8_t>(value >> shift);
    return bytes;
  }
};

TEST_F(DecodeAvif, TurnsTheImageByTheProfile) {
  const Bytes turned = file("orientation_6");
  EXPECT_EQ(decode(turned).width_px, 5);
  EXPECT_EQ(decode(turned, {.profile = MediaProfile::kSglang}).width_px, 7);
}

TEST_F(DecodeAvif, SizesAreCheckedBeforeMemoryIsTaken) {
  expect_error(ErrorCode::kCorruptData, "image: cannot decode AVIF: ", [] {
    (void)decode(with_number("flat", "ispe", 4, 0x7FFFFFFF));
  });
  const auto wide = [](std::int64_t most) {
    MediaOptions options;
    options.limits.max_item_bytes = static_cast<std::size_t>(most);
    (void)decode(with_number("flat", "ispe", 4, 8000), options);
  };
  expect_error(ErrorCode::kInvalidArgument, "image: expected an image that takes at most 1000000",
               [&] { wide(1'000'000); });
}

TEST_F(DecodeAvif, TruncatedPixelsAreCorrupt) {
  Bytes cut = file("flat");
  cut.pop_back();
  expect_error(ErrorCode::kCorruptData, "image: cannot decode AVIF: Truncated data",
               [&] { (void)decode(cut); });
}

TEST_F(DecodeAvif, StopsWhenAskedTo) {
  const Bytes flat = file("flat");
  test::expect_stops([&] { (void)decode(flat); });
}

}  // namespace
}  // namespace fovea::media
