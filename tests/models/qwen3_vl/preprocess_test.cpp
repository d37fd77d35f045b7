// Plans and patch rows of Qwen3-VL: worked examples of the specification and the golden pixels.
#include "models/qwen3_vl/preprocess.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "checkpoint/safetensors.h"
#include "support/golden.h"

namespace fovea::qwen3_vl {
namespace {

Config tiny_config() {
  Config c;
  c.deepstack_visual_indexes = {8, 16, 24};
  return c;
}

TEST(Preprocess, PlansImagesAsTheWorkedExamples) {
  struct Case {
    std::int64_t height, width, grid_h, grid_w, tokens;
  };
  for (const Case& c :
       {Case{336, 336, 20, 20, 100}, Case{480, 640, 30, 40, 300}, Case{720, 1280, 44, 80, 880},
        Case{1080, 1920, 68, 120, 2040}, Case{100, 100, 16, 16, 64}, Case{80, 112, 14, 20, 70},
        Case{4000, 6000, 208, 312, 16224}}) {
    const ItemPlan plan = plan_image(tiny_config(), {}, c.width, c.height);
    EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, c.grid_h, c.grid_w}));
    EXPECT_EQ(plan.spec.input_rows, c.grid_h * c.grid_w);
    EXPECT_EQ(plan.spec.out_rows, c.tokens);
    EXPECT_EQ(plan.spec.path_tokens[0], c.tokens);
    EXPECT_EQ(plan.spec.num_seqs, 1);
  }
}

TEST(Preprocess, PlansVideosAsTheWorkedExamples) {
  struct Case {
    std::int64_t frames, height, width;
    std::array<std::int64_t, 3> grid;
    std::int64_t tokens;
  };
  for (const Case& c :
       {Case{16, 720, 1280, {8, 44, 80}, 7040}, Case{15, 720, 1280, {8, 44, 80}, 7040},
        Case{64, 1080, 1920, {32, 28, 52}, 11648}, Case{768, 1080, 1920, {384, 8, 14}, 10752},
        Case{2, 64, 48, {1, 4, 4}, 4}, Case{1, 64, 48, {1, 4, 4}, 4}}) {
    const ItemPlan plan = plan_video(tiny_config(), {}, c.frames, c.width, c.height);
    EXPECT_EQ(plan.grid, c.grid) << c.frames;
    EXPECT_EQ(plan.spec.out_rows, c.tokens);
    EXPECT_EQ(plan.spec.num_seqs, c.grid[0]);
  }
}

TEST(Preprocess, SamplesFramesAsTheWorkedExamples) {
  using Indices = std::vector<std::int64_t>;
  EXPECT_EQ(sample_frames({}, 100, 25, 2), (Indices{0, 14, 28, 42, 57, 71, 85, 99}));
  EXPECT_EQ(sample_frames({}, 30, 10, 2), (Indices{0, 6, 12, 17, 23, 29}));
  EXPECT_EQ(sample_frames({}, 3, 30, 2), (Indices{0, 1, 2}));
  EXPECT_EQ(sample_frames({}, 20, 24, 2), (Indices{0, 6, 13, 19}));
  EXPECT_EQ(sample_frames({}, 20, 0, 2), (Indices{0, 6, 13, 19})) << "unknown rate counts as 24";
  EXPECT_EQ(sample_frames({}, 1, 24, 2), Indices{0});
  EXPECT_EQ(sample_frames({}, 100000, 25, 2).size(), 768u);
  EXPECT_THROW((void)sample_frames({}, 10, 25, 0), Error);
}

TEST(Preprocess, CapsPixelsPerFrameWhenAsked) {
  PreprocessConfig p;
  p.cap_pixels_per_frame = true;
  p.max_video_tokens = 100;
  // 100 tokens of 32 x 32 pixels: a frame may have 102400 pixels.
  const ItemPlan plan = plan_video(tiny_config(), p, 4, 1280, 720);
  EXPECT_LE(plan.resized_height_px * plan.resized_width_px, 102400);
  EXPECT_GT(plan.resized_height_px * plan.resized_width_px, 80000);
}

TEST(Preprocess, PatchRowsAreInMergeBlockOrder) {
  // Grid 4 x 6 of the specification, section 4.1; picture 96 x 64 pixels.
  PreprocessConfig p;
  p.image = {1, 1 << 24};
  const ItemPlan plan = plan_image(tiny_config(), p, 96, 64);
  ASSERT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, 4, 6}));
  std::vector<std::int32_t> positions(24 * 4);
  std::vector<std::int32_t> sources(24 * 4);
  write_patch_rows(tiny_config(), plan, 1000, positions, sources);
  const std::vector<std::pair<int, int>> expected{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {0, 3},
                                                  {1, 2}, {1, 3}, {0, 4}, {0, 5}, {1, 4}, {1, 5},
                                                  {2, 0}, {2, 1}, {3, 0}, {3, 1}, {2, 2}, {2, 3},
                                                  {3, 2}, {3, 3}, {2, 4}, {2, 5}, {3, 4}, {3, 5}};
  for (std::size_t r = 0; r < expected.size(); ++r) {
    const auto [y, x] = expected[r];
    EXPECT_EQ(positions[4 * r], y);
    EXPECT_EQ(positions[4 * r + 1], x);
    EXPECT_EQ(positions[4 * r + 2], 4);
    EXPECT_EQ(positions[4 * r + 3], 6);
    EXPECT_EQ(sources[4 * r], 1000 + (y * 16 * 96 + x * 16) * 3);
    EXPECT_EQ(sources[4 * r + 1], 96 * 3);
    EXPECT_EQ(sources[4 * r + 2], 0) << "a still picture repeats its only frame";
  }
}

TEST(Preprocess, OddVideosRepeatTheLastFrame) {
  PreprocessConfig p;
  p.video = {1, 1 << 24};
  const ItemPlan plan = plan_video(tiny_config(), p, 3, 32, 32);
  ASSERT_EQ(plan.grid, (std::array<std::int64_t, 3>{2, 2, 2}));
  std::vector<std::int32_t> positions(8 * 4);
  std::vector<std::int32_t> sources(8 * 4);
  write_patch_rows(tiny_config(), plan, 0, positions, sources);
  const std::int32_t frame = 32 * 32 * 3;
  EXPECT_EQ(sources[2], frame) << "frames 0 and 1";
  EXPECT_EQ(sources[4 * 4], 2 * frame);
  EXPECT_EQ(sources[4 * 4 + 2], 0) << "frame 2 twice";
}

TEST(Preprocess, RefusesFramesOfAnotherSize) {
  const ItemPlan plan = plan_video(tiny_config(), {}, 2, 64, 48);
  std::vector<std::uint8_t> pixels(64 * 48 * 3);
  std::vector<std::uint8_t> out(plan.pixel_bytes);
  const std::vector<RgbView> frames{{pixels.data(), 64, 48}, {pixels.data(), 48, 64}};
  EXPECT_THROW(fill_pixels({}, plan, frames, out), Error);
  EXPECT_THROW(fill_pixels({}, plan, std::span(frames).first(1), out), Error);
}

/// Bytes of a patch row in the order of pixel_values: what patchify reads through `sources`.
std::vector<std::uint8_t> patch_bytes(const std::vector<std::uint8_t>& pixels,
                                      const std::int32_t* source, std::int64_t patch) {
  std::vector<std::uint8_t> row;
  for (int channel = 0; channel < 3; ++channel) {
    for (int frame = 0; frame < 2; ++frame) {
      for (std::int64_t py = 0; py < patch; ++py) {
        for (std::int64_t px = 0; px < patch; ++px) {
          row.push_back(pixels[static_cast<std::size_t>(source[0] + frame * source[2] +
                                                        py * source[1] + px * 3 + channel)]);
        }
      }
    }
  }
  return row;
}

// Resized and patchified bytes equal those of the reference, for every size it was run on.
TEST(PreprocessGolden, PatchBytesAreThoseOfTheReference) {
  for (const std::string& folder : test::golden_folders("qwen3_vl", "preprocess.safetensors")) {
    const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
    const Config config = parse_config(files);
    const PreprocessConfig p = parse_preprocess_config(files, config, MediaOptions{});
    const checkpoint::SafetensorsFile file(folder + "/preprocess.safetensors");
    int cases = 0;
    for (const checkpoint::TensorEntry& entry : file.header().tensors) {
      if (!entry.name.ends_with(".rgb")) continue;
      const std::string name = entry.name.substr(0, entry.name.size() - 4);
      SCOPED_TRACE(name);
      const ConstTensorView rgb = file.tensor(entry.name);
      const ConstTensorView expected = file.tensor(name + ".pixel_values_u8");
      const ItemPlan plan = plan_image(config, p, rgb.shape[1], rgb.shape[0]);
      ASSERT_EQ(plan.spec.input_rows, expected.shape[0]);
      std::vector<std::uint8_t> pixels(plan.pixel_bytes);
      const RgbView view{rgb.as<std::uint8_t>(), rgb.shape[1], rgb.shape[0]};
      fill_pixels(p, plan, {&view, 1}, pixels);
      const auto rows = static_cast<std::size_t>(plan.spec.input_rows);
      std::vector<std::int32_t> positions(rows * 4);
      std::vector<std::int32_t> sources(rows * 4);
      write_patch_rows(config, plan, 0, positions, sources);
      std::vector<std::uint8_t> got;
      for (std::size_t r = 0; r < rows; ++r) {
        const auto row = patch_bytes(pixels, &sources[4 * r], config.patch_size);
        got.insert(got.end(), row.begin(), row.end());
      }
      const std::vector<std::uint8_t> want(expected.as<std::uint8_t>(),
                                           expected.as<std::uint8_t>() + expected.bytes());
      EXPECT_EQ(got, want);
      ++cases;
    }
    EXPECT_GT(cases, 0) << folder;
  }
}

}  // namespace
}  // namespace fovea::qwen3_vl
