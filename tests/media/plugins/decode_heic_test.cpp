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

using std::string_view_literals::operator""sv;
using test::Bytes;
using test::decode;
using test::expect_error;

/// Files of the golden file by their names; the pixels of pillow-heif are compared by
/// image_formats_test.
class DecodeHeic : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const ImagePluginStatus& plugin : image_plugin_status())
      if (plugin.format == "heic" && plugin.text.starts_with("not used"))
        GTEST_SKIP() << plugin.text;
  }

  /// @param golden_name which of the two golden files.
  static Bytes file(const std::string& name, const std::string& golden_name = "heic") {
    const checkpoint::SafetensorsFile golden(FOVEA_TEST_SOURCE_DIR "/tests/media/" + golden_name +
                                             ".safetensors");
    return test::bytes_of_tensor(golden, name + ".heic");
  }

  /// 3000 x 2000 pixels with alpha.
  static Bytes large_file() {
    return read_file(FOVEA_TEST_SOURCE_DIR "/tests/media/images/flat_alpha.heic", 1 << 16);
  }

  /// The file with bytes from a place behind a word of its header on.
  static Bytes changed(Bytes bytes, std::string_view word, std::ptrdiff_t distance,
                       std::string_view value) {
    const auto found = std::search(bytes.begin(), bytes.end(), word.begin(), word.end());
    EXPECT_NE(found, bytes.end()) << word;
    std::copy(value.begin(), value.end(), found + std::ssize(word) + distance);
    return bytes;
  }

  static void expect_refused(ErrorCode code, const std::string& message, const Bytes& bytes) {
    expect_error(code, message, [&] { (void)decode(bytes); });
  }
};

TEST_F(DecodeHeic, TurnsTheImageByEveryProfile) {
  const Bytes turned = file("orientation_6", "heic_files");
  EXPECT_EQ(decode(turned).width_px, 5);
  EXPECT_EQ(decode(turned, {.profile = MediaProfile::kSglang}).width_px, 5);
}

TEST_F(DecodeHeic, SizesAreCheckedBeforeMemoryIsTaken) {
  expect_refused(ErrorCode::kCorruptData, "image: cannot decode HEIC: ",
                 changed(file("flat"), "ispe", 4, "\x7F\xFF\xFF\xFF"));
  MediaOptions options;
  options.limits.max_item_bytes = 1'000'000;
  expect_error(ErrorCode::kInvalidArgument, "image: expected an image that takes at most 1000000",
               [&] { (void)decode(large_file(), options); });
}

TEST_F(DecodeHeic, CodedImagesAreNotLargerThanTheHeaderSays) {
  expect_refused(ErrorCode::kInvalidArgument,
                 "image: expected coded HEVC images of at most 5184 pixels of 8 bits, as the "
                 "header says, got one of 6000000 pixels of 8 bits",
                 changed(large_file(), "ispe", 4, "\0\0\0\x08\0\0\0\x08"sv));
}

TEST_F(DecodeHeic, CodedSamplesHaveNoMoreBitsThanTheHeaderSays) {
  // hvcC: 16 bytes, then the kind of chroma and the bits of luma beyond 8
  expect_refused(ErrorCode::kInvalidArgument, "pixels of 10 bits",
                 changed(file("bits10_3_420"), "hvcC", 17, "\xF8"));
}

TEST_F(DecodeHeic, RefusesWhatIsNeitherCodedNorAGrid) {
  expect_refused(ErrorCode::kUnsupported,
                 "image: expected an image coded with HEVC or a grid of such images, got item type "
                 "iovl",
                 changed(file("grid", "heic_files"), "grid", -4, "iovl"));
  expect_refused(ErrorCode::kUnsupported,
                 "image: expected images made of tiles coded with HEVC, got item type grid made of "
                 "jpeg",
                 changed(file("grid", "heic_files"), "hvc1", -4, "jpeg"));
}

TEST_F(DecodeHeic, RefusesTwoBoxesWhereThereIsOne) {
  Bytes twice = file("flat");
  const std::string_view meta("\0\0\0\x0Cmeta\0\0\0\0", 12);
  twice.insert(twice.end(), meta.begin(), meta.end());
  expect_refused(ErrorCode::kCorruptData, "image: HEIC file with two boxes meta", twice);
}

TEST_F(DecodeHeic, RefusesTheThirdExtentThatIsTheWholeFile) {
  const std::string_view file(
      "\0\0\0\x14"
      "ftypheic\0\0\0\0heic"
      "\0\0\0\x22"
      "meta\0\0\0\0"
      "\0\0\0\x16"
      "iloc\0\0\0\0"
      "\0\0"               // offsets, lengths and others are left out
      "\0\1"               // items
      "\0\1\0\0\xFF\xFF",  // which one, the file itself, extents
      54);
  expect_refused(ErrorCode::kCorruptData, "image: HEIC items of at least 162 bytes in a file of 54",
                 Bytes(file.begin(), file.end()));
}

TEST_F(DecodeHeic, StopsWhenAskedTo) {
  const Bytes flat = file("flat");
  test::expect_stops([&] { (void)decode(flat); });
}

}  // namespace
}  // namespace fovea::media
