// Odd files of every format beside JPEG, PNG and WebP, against the pixels that Pillow gives in the
// way of each loader. tools/image_formats.py makes the golden files.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/check.h"
#include "media/decode_image.h"
#include "media/plugins/image_plugins.h"
#include "support/media_profile_cases.h"

namespace fovea::media {
namespace {

using test::MediaProfileCase;

class ImageFormats : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Files, ImageFormats,
                         ::testing::Values("formats.safetensors", "heic.safetensors",
                                           "heic_files.safetensors"),
                         [](const auto& file) {
                           return file.param.substr(0, file.param.find('.'));
                         });

/// Whether the format of a file has a plugin that is not there.
bool is_left_out(const MediaProfileCase& file) {
  return std::ranges::any_of(image_plugin_status(), [&](const ImagePluginStatus& plugin) {
    return file.name.ends_with(cat(".", plugin.format)) && plugin.text.starts_with("not used");
  });
}

/// How many files of each format stand in a list, by the ends of their names.
std::map<std::string, int> count_formats(const std::vector<MediaProfileCase>& cases) {
  std::map<std::string, int> counts;
  for (const MediaProfileCase& each : cases) ++counts[each.name.substr(each.name.rfind('.'))];
  return counts;
}

/// The images of a golden file that a loader takes, with the pixels that Pillow gives on this
/// architecture: on ARM libyuv multiplies colours by alpha, and resizes it, otherwise than on x86.
std::vector<MediaProfileCase> cases_here(const std::string& profile, const std::string& file) {
  std::vector<MediaProfileCase> cases = test::media_profile_cases(profile, file);
#ifdef __aarch64__
  if (file == "formats.safetensors") {
    for (MediaProfileCase& on_arm :
         test::media_profile_cases(profile, "formats_aarch64.safetensors"))
      *std::ranges::find(cases, on_arm.name, &MediaProfileCase::name) = std::move(on_arm);
  }
#endif
  return cases;
}

TEST_P(ImageFormats, GiveThePixelsOfPillow) {
  for (const auto& [name, profile] : test::kMediaProfiles) {
    const std::vector<MediaProfileCase> cases = cases_here(name, GetParam());
    for (const auto& [format, count] : count_formats(cases)) EXPECT_GE(count, 30) << format;
    for (const MediaProfileCase& expected : cases) {
      if (is_left_out(expected)) continue;
      SCOPED_TRACE(expected.name + " as " + name);
      try {
        const Image image = decode_image(expected.file, expected.name, {.profile = profile});
        EXPECT_EQ(image.width_px, expected.width_px);
        EXPECT_EQ(image.height_px, expected.height_px);
        EXPECT_EQ(image.rgb, expected.rgb);
        const ImageInfo info = probe_image(expected.file, expected.name, {.profile = profile});
        EXPECT_EQ(info.width_px, expected.width_px);
        EXPECT_EQ(info.height_px, expected.height_px);
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
}

TEST_P(ImageFormats, RefuseWhatPillowRefuses) {
  const std::vector<MediaProfileCase> cases = test::refused_images(GetParam());
  for (const auto& [format, count] : count_formats(cases)) EXPECT_GE(count, 5) << format;
  for (const MediaProfileCase& refused : cases) {
    try {
      (void)decode_image(refused.file, refused.name, {});
      ADD_FAILURE() << refused.name << " was decoded";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find(refused.name), 0U) << error.what();
      EXPECT_NE(error.code(), ErrorCode::kInternal) << error.what();
    }
  }
}

/// Whatever is cut off or changed, a decoder gives an image or an error, and it stops when asked
/// to.
TEST_P(ImageFormats, DamagedFilesAreAnErrorOrAnImage) {
  for (const MediaProfileCase& whole : test::media_profile_cases("vllm", GetParam())) {
    const auto step = static_cast<std::ptrdiff_t>(whole.file.size() / 64 + 1);
    for (std::ptrdiff_t i = 1; i < std::ssize(whole.file); i += step) {
      std::vector<std::uint8_t> damaged = whole.file;
      damaged[static_cast<std::size_t>(i)] ^= 0xFF;
      for (const auto& file : {damaged, {whole.file.begin(), whole.file.begin() + i}}) {
        try {
          (void)decode_image(file, whole.name, {.limits = {.max_image_pixels = 1 << 16}});
        } catch (const Error& error) {
          EXPECT_NE(error.code(), ErrorCode::kInternal) << error.what();
        }
      }
    }
  }
}

}  // namespace
}  // namespace fovea::media
