// Resized and patchified bytes of every family over grids that the reference data holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "checkpoint/safetensors.h"
#include "core/file.h"
#include "media/decode_image.h"
#include "models/common/grid/inputs.h"
#include "models/common/grid/processor.h"
#include "models/load_model.h"
#include "models/registry.h"
#include "support/golden.h"

namespace fovea::common {
namespace {

/// Bytes of a patch row in the order of pixel_values: what patchify reads through `sources`.
std::vector<std::uint8_t> patch_bytes(const std::vector<std::uint8_t>& pixels,
                                      const std::int32_t* source, const GridGeometry& geometry) {
  std::vector<std::uint8_t> row;
  for (int channel = 0; channel < 3; ++channel) {
    for (std::int64_t frame = 0; frame < geometry.temporal_patch_size; ++frame) {
      for (std::int64_t py = 0; py < geometry.patch_size; ++py) {
        for (std::int64_t px = 0; px < geometry.patch_size; ++px) {
          row.push_back(pixels[static_cast<std::size_t>(source[0] + frame * source[2] +
                                                        py * source[1] + px * 3 + channel)]);
        }
      }
    }
  }
  return row;
}

/// Patches of an item, resized and cut: [patches, 3, temporal_patch_size, patch_size, patch_size].
/// @param frames of a video, or the image.
/// @param row_major whether the reference's processor leaves patches in the order of the image.
std::vector<std::uint8_t> patches_of(const GridProcessor& processor, const ItemPlan& plan,
                                     std::span<const RgbView> frames, bool row_major) {
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  for (std::size_t f = 0; f < frames.size(); ++f) {
    processor.fill_frame(plan, static_cast<std::int64_t>(f), frames[f], pixels);
  }
  const auto rows = static_cast<std::size_t>(plan.spec.input_rows);
  std::vector<std::int32_t> positions(rows * 4);
  std::vector<std::int32_t> sources(rows * 4);
  const GridGeometry& geometry = processor.processing().geometry;
  write_patch_rows(geometry, plan, 0, plan.pixel_bytes, positions, sources);
  std::vector<std::uint8_t> patches(rows * static_cast<std::size_t>(geometry.patch_dim()));
  for (std::size_t r = 0; r < rows; ++r) {
    const auto row = patch_bytes(pixels, &sources[4 * r], geometry);
    const std::int64_t place = positions[4 * r] * plan.grid[2] + positions[4 * r + 1];
    const std::size_t to = row_major ? static_cast<std::size_t>(place) : r;
    std::ranges::copy(row, patches.begin() + static_cast<std::ptrdiff_t>(to * row.size()));
  }
  return patches;
}

/// CRC-32 as zlib computes it.
std::int64_t crc32_of(std::span<const std::uint8_t> bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc % 2 == 1 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

/// The stems of tensors whose names end with `suffix`, or with it and ".crc32": data that is not
/// small has only its sum.
std::set<std::string> stems_of(const checkpoint::SafetensorsFile& file, std::string_view suffix) {
  std::set<std::string> stems;
  for (const checkpoint::TensorEntry& entry : file.header().tensors) {
    std::string_view name = entry.name;
    if (name.ends_with(".crc32")) name.remove_suffix(6);
    if (name.ends_with(suffix)) stems.emplace(name.substr(0, name.size() - suffix.size()));
  }
  return stems;
}

/// Requires the bytes of the tensor `name`, and its sum, where the file has them.
void expect_bytes(const checkpoint::SafetensorsFile& file, const std::string& name,
                  const std::vector<std::uint8_t>& got) {
  if (file.find(name) != nullptr) {
    const ConstTensorView want = file.tensor(name);
    ASSERT_EQ(got.size(), want.bytes());
    EXPECT_TRUE(std::ranges::equal(got, std::span(want.as<std::uint8_t>(), want.bytes())));
  }
  if (file.find(name + ".crc32") != nullptr) {
    EXPECT_EQ(crc32_of(got), file.tensor(name + ".crc32").as<std::int64_t>()[0]);
  }
}

/// Folders of families that are known and whose items are grids of patches.
std::vector<std::string> grid_folders() {
  std::vector<std::string> folders;
  for (const std::string& root : test::golden_roots()) {
    for (const std::string& name : test::golden_families(root, "preprocess.safetensors")) {
      const std::string folder = root + "/" + name;
      const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
      const bool known = std::ranges::any_of(model_families(), [&](const ModelFamily* family) {
        return std::ranges::find(family->architectures, files.architectures().front()) !=
               family->architectures.end();
      });
      if (known && plan_model(files, {})->processor().plan_image(64, 64).has_grid_thw) {
        folders.push_back(folder);
      }
    }
  }
  return folders;
}

class GoldenPatches : public ::testing::TestWithParam<std::string> {
 protected:
  void expect_image(const checkpoint::SafetensorsFile& file, const std::string& stem,
                    RgbView image) const {
    SCOPED_TRACE(stem);
    const ItemPlan plan = processor_.plan_image(image.width_px, image.height_px);
    const bool row_major = file.find(stem + "image_grid_hws") != nullptr;
    expect_bytes(file, stem + "pixel_values_u8",
                 patches_of(processor_, plan, {&image, 1}, row_major));
  }

  std::unique_ptr<EncoderGraphModel> planner_ =
      plan_model(checkpoint::read_hf_config(GetParam()), {});
  const GridProcessor& processor_ = dynamic_cast<const GridProcessor&>(planner_->processor());
};

TEST_P(GoldenPatches, AreThoseOfTheReferenceAtEverySize) {
  const checkpoint::SafetensorsFile file(GetParam() + "/preprocess.safetensors");
  const std::set<std::string> stems = stems_of(file, "pixel_values_u8");
  for (const std::string& stem : stems) {
    const ConstTensorView rgb = file.tensor(stem + "rgb");
    expect_image(file, stem, {rgb.as<std::uint8_t>(), rgb.shape[1], rgb.shape[0]});
  }
  EXPECT_FALSE(stems.empty());
}

TEST_P(GoldenPatches, OfImagesAreThoseOfTheReference) {
  const checkpoint::SafetensorsFile file(GetParam() + "/golden.safetensors");
  std::size_t images = 0;
  for (const auto& entry : std::filesystem::directory_iterator(GetParam() + "/images")) {
    const std::string path = entry.path().string();
    const media::Image image = media::decode_image(read_file(path, 1 << 24), path, {});
    expect_image(file, entry.path().stem().string() + ".in.",
                 {image.rgb.data(), image.width_px, image.height_px});
    ++images;
  }
  EXPECT_EQ(stems_of(file, ".in.pixel_values_u8").size(), images);
}

TEST_P(GoldenPatches, OfAVideoAreThoseOfTheReference) {
  const checkpoint::SafetensorsFile file(GetParam() + "/golden.safetensors");
  if (file.find("video.frames") == nullptr) GTEST_SKIP() << "the reference has no video";
  const ConstTensorView stored = file.tensor("video.frames");
  const std::int64_t width = stored.shape[2];
  const std::int64_t height = stored.shape[1];
  std::vector<RgbView> frames;
  for (std::int64_t f = 0; f < stored.shape[0]; ++f) {
    frames.push_back({stored.as<std::uint8_t>() + f * height * width * 3, width, height});
  }
  const ItemPlan plan = processor_.plan_video(stored.shape[0], width, height);
  expect_bytes(file, "video.in.pixel_values_videos_u8",
               patches_of(processor_, plan, frames, false));
}

INSTANTIATE_TEST_SUITE_P(Folders, GoldenPatches, ::testing::ValuesIn(grid_folders()),
                         [](const auto& folder) {
                           const std::filesystem::path path(folder.param);
                           return path.filename().string() + std::to_string(folder.index);
                         });

}  // namespace
}  // namespace fovea::common
