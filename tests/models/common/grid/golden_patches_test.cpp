// Resized and patchified bytes of every family over grids that the reference data holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "checkpoint/safetensors.h"
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

/// Patches of an image, resized and cut: [patches, 3, temporal_patch_size, patch_size, patch_size].
/// @param row_major whether the reference's processor leaves patches in the order of the image.
std::vector<std::uint8_t> patches_of(const GridProcessor& processor, const ItemPlan& plan,
                                     RgbView image, bool row_major) {
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  processor.fill_frame(plan, 0, image, pixels);
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

class GoldenPatches : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenPatches, AreThoseOfTheReferenceAtEverySize) {
  const auto planner = plan_model(checkpoint::read_hf_config(GetParam()), {});
  const auto& processor = dynamic_cast<const GridProcessor&>(planner->processor());
  const checkpoint::SafetensorsFile file(GetParam() + "/preprocess.safetensors");
  int cases = 0;
  for (const checkpoint::TensorEntry& entry : file.header().tensors) {
    if (!entry.name.ends_with(".rgb")) continue;
    const std::string name = entry.name.substr(0, entry.name.size() - 4);
    SCOPED_TRACE(name);
    const ConstTensorView rgb = file.tensor(entry.name);
    const ConstTensorView expected = file.tensor(name + ".pixel_values_u8");
    const RgbView image{rgb.as<std::uint8_t>(), rgb.shape[1], rgb.shape[0]};
    const ItemPlan plan = processor.plan_image(image.width_px, image.height_px);
    ASSERT_EQ(plan.spec.input_rows, expected.shape[0]);
    const std::vector<std::uint8_t> want(expected.as<std::uint8_t>(),
                                         expected.as<std::uint8_t>() + expected.bytes());
    const bool row_major = file.find(name + ".image_grid_hws") != nullptr;
    EXPECT_EQ(patches_of(processor, plan, image, row_major), want);
    ++cases;
  }
  EXPECT_GT(cases, 0);
}

INSTANTIATE_TEST_SUITE_P(Folders, GoldenPatches, ::testing::ValuesIn(grid_folders()),
                         [](const auto& folder) {
                           const std::filesystem::path path(folder.param);
                           return path.filename().string() + std::to_string(folder.index);
                         });

}  // namespace
}  // namespace fovea::common
