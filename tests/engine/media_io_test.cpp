#include "fovea/media_io.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace fovea {
namespace {

using test::expect_error;

MediaIo io_of(std::string_view json) { return read_media_io_kwargs(json, "io"); }

TEST(MediaIo, TakesTheRateOfVideos) {
  EXPECT_EQ(io_of("{}").fps, std::nullopt);
  EXPECT_EQ(io_of(R"({"video": {"fps": 1.5}})").fps, 1.5);
  EXPECT_EQ(io_of(R"({"video": {"fps": null, "num_frames": -1}})").fps, std::nullopt);
  EXPECT_EQ(io_of(R"({"video": null})").fps, std::nullopt);
}

TEST(MediaIo, TakesWhatRepeatsHowImagesAreDecoded) {
  EXPECT_EQ(io_of(R"({"image": {"image_mode": "RGB"}})").fps, std::nullopt);
  (void)io_of(R"({"image": {"rgba_background_color": [255, 255, 255]}})");
  MediaOptions grey;
  for (std::uint8_t& level : grey.background) level = 7;
  (void)read_media_io_kwargs(R"({"image": {"rgba_background_color": [7, 7, 7]}})", "io", grey);
  expect_error(ErrorCode::kUnsupported,
               "io: image.rgba_background_color: images are composited on [7,7,7]", [&] {
                 (void)read_media_io_kwargs(
                     R"({"image": {"rgba_background_color": [255, 255, 255]}})", "io", grey);
               });
}

TEST(MediaIo, RefusesByNameWhatItCannotHonour) {
  const auto refused = [](const char* message, const char* json) {
    expect_error(ErrorCode::kUnsupported, message, [&] { (void)io_of(json); });
  };
  refused("io: video.num_frames: ", R"({"video": {"num_frames": 32}})");
  refused("expected -1 here, got 32", R"({"video": {"num_frames": 32}})");
  refused("io: video.video_backend: no option", R"({"video": {"video_backend": "opencv"}})");
  refused("io: image.image_mode: no option", R"({"image": {"image_mode": "L"}})");
  refused("io: audio: expected options of image or video", R"({"audio": {}})");
}

TEST(MediaIo, RefusesWhatIsNoSuchObject) {
  const auto refused = [](const char* message, const char* json) {
    expect_error(ErrorCode::kInvalidArgument, message, [&] { (void)io_of(json); });
  };
  refused("io: ", "{");
  refused("io: expected an object, got 3", "3");
  refused("io: video: expected an object, got 2", R"({"video": 2})");
  refused("io: video.fps: expected a number above 0, got -1", R"({"video": {"fps": -1}})");
  refused("io: video.fps: ", R"({"video": {"fps": "1"}})");
}

}  // namespace
}  // namespace fovea
