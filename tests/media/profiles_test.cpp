// Every kind of orientation and transparency, by every profile, against the pixels that Pillow
// gives in the way of each loader. tools/media_profiles.py makes the golden file.
#include "media/profile.h"

#include <gtest/gtest.h>

#include "media/decode_image.h"
#include "support/media_profile_cases.h"

namespace fovea::media {
namespace {

TEST(MediaProfiles, GiveThePixelsOfTheirLoaders) {
  for (const auto& [name, profile] : test::kMediaProfiles) {
    const std::vector<test::MediaProfileCase> cases = test::media_profile_cases(name);
    EXPECT_GE(cases.size(), 140U) << name;
    for (const test::MediaProfileCase& expected : cases) {
      SCOPED_TRACE(expected.name + " as " + name);
      const Image image = decode_image(expected.file, expected.name, {.profile = profile});
      EXPECT_EQ(image.width_px, expected.width_px);
      EXPECT_EQ(image.height_px, expected.height_px);
      EXPECT_EQ(image.rgb, expected.rgb);
    }
  }
}

TEST(MediaProfiles, SizesOfHeadersAreThoseOfDecodedImages) {
  for (const auto& [name, profile] : test::kMediaProfiles) {
    for (const test::MediaProfileCase& expected : test::media_profile_cases(name)) {
      const ImageInfo info = probe_image(expected.file, expected.name, {.profile = profile});
      EXPECT_EQ(info.width_px, expected.width_px) << expected.name << " as " << name;
      EXPECT_EQ(info.height_px, expected.height_px) << expected.name << " as " << name;
    }
  }
}

}  // namespace
}  // namespace fovea::media
