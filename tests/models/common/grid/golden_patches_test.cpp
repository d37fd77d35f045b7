// Resized and patchified bytes of every family over grids that the reference data holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include "checkpoint/safetensors.h"
#include "core/file.h"
#include "media/decode_image.h"
#include "models/common/grid/inputs.h"
#include "models/common/grid/processor.h"
#include "models/golden_model.h"
#include "models/load_model.h"
#include "support/crc32.h"
#include "support/golden.h"

namespace fovea::common {
namespace {

using ByteVector = std::vector<std::uint8_t>;
using checkpoint::SafetensorsFile;

ByteVector bytes_of(const ConstTensorView& view) {
  return {view.as<std::uint8_t>(), view.as<std::uint8_t>() + view.bytes()};
}

/// ByteVector of a patch row in the order of pixel_values: what patchify reads through `sources`.
ByteVector patch_bytes(const ByteVector& pixels, const std::int32_t* source,
                       const GridGeometry& geometry) {
  ByteVector row;
  for (int channel = 0; channel < 3; ++channel) {
    for (std::int64_t frame = 0; frame < geometry.patch_frames(); ++frame) {
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

/// Patches of resized frames: [patches, 3, patch_frames, patch_size, patch_size], in the order in
/// which the reference's processor leaves them.
ByteVector patches_of(const GridProcessing& p, const ItemPlan& plan, const ByteVector& pixels) {
  const std::int64_t of_frame = plan.grid[1] * plan.grid[2];
  const bool apart = p.geometry.frames != FrameUse::kJoined;  // each frame that there is
  const auto rows =
      static_cast<std::size_t>(apart ? plan.num_frames * of_frame : plan.spec.input_rows);
  std::vector<std::int32_t> positions(rows * 4);
  std::vector<std::int32_t> sources(rows * 4);
  write_patch_rows(p.geometry, plan, 0, plan.pixel_bytes, positions, sources);
  ByteVector patches(rows * static_cast<std::size_t>(p.geometry.patch_dim()));
  for (std::size_t r = 0; r < rows; ++r) {
    const ByteVector row = patch_bytes(pixels, &sources[4 * r], p.geometry);
    const std::int64_t frame = static_cast<std::int64_t>(r) / of_frame;
    const std::int64_t place =
        frame * of_frame + positions[4 * r] * plan.grid[2] + positions[4 * r + 1];
    const std::size_t to = p.row_major_values ? static_cast<std::size_t>(place) : r;
    std::ranges::copy(row, patches.begin() + static_cast<std::ptrdiff_t>(to * row.size()));
  }
  return patches;
}

/// A resized image as [3, height, width].
ByteVector planes_of(const ByteVector& pixels) {
  ByteVector planes;
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t i = channel; i < pixels.size(); i += 3) planes.push_back(pixels[i]);
  }
  return planes;
}

/// An image as the reference saw it, and the prefix of the names of what became of it.
struct GoldenImage {
  std::string name;
  media::Image image;
};

/// `<WxH>.rgb` of preprocess.safetensors.
std::vector<GoldenImage> raw_cases(const SafetensorsFile& file) {
  std::vector<GoldenImage> cases;
  for (const checkpoint::TensorEntry& entry : file.header().tensors) {
    if (!entry.name.ends_with(".rgb")) continue;
    const std::string name = entry.name.substr(0, entry.name.size() - 4);
    cases.push_back({name, {entry.shape[1], entry.shape[0], bytes_of(file.tensor(entry.name))}});
  }
  return cases;
}

/// The files of images/, whose results are in golden.safetensors.
std::vector<GoldenImage> image_cases(const std::string& folder) {
  std::vector<GoldenImage> cases;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/images")) {
    const std::string path = entry.path().string();
    cases.push_back({entry.path().stem().string() + ".in",
                     media::decode_image(read_file(path, 1 << 24), path, {})});
  }
  return cases;
}

/// The shape of the reference's pixel values, where the file has any of this image.
std::optional<std::vector<std::int64_t>> shape_of(const SafetensorsFile& file,
                                                  const std::string& name) {
  if (const auto* const entry = file.find(name + ".pixel_values_u8")) return entry->shape;
  if (file.find(name + ".pixel_values.shape") == nullptr) return std::nullopt;
  const ConstTensorView view = file.tensor(name + ".pixel_values.shape");
  std::vector<std::int64_t> shape(view.bytes() / sizeof(std::int64_t));
  std::memcpy(shape.data(), view.data, view.bytes());
  return shape;
}

/// Compares bytes with those of the file, or with what it holds for them.
void expect_bytes(const SafetensorsFile& file, const std::string& key, const ByteVector& got) {
  if (file.find(key) != nullptr) {
    EXPECT_EQ(got, bytes_of(file.tensor(key)));
    return;
  }
  std::int64_t crc = 0;
  std::memcpy(&crc, file.tensor(key + ".crc32").data, sizeof(crc));
  EXPECT_EQ(test::crc32_of(got), crc);
}

/// @return how many of the cases were compared: those that the file has values of.
int compare(const GridProcessor& processor, const SafetensorsFile& file,
            const std::vector<GoldenImage>& cases) {
  int compared = 0;
  for (const auto& [name, image] : cases) {
    SCOPED_TRACE(name);
    const auto shape = shape_of(file, name);
    if (!shape) continue;
    const bool whole = file.find(name + ".image_sizes") != nullptr;  // images, not patches
    const std::int64_t factor = processor.processing().geometry.resize_factor();
    // The class of images alone rounds to patches, which only processor_config.json corrects.
    if (whole && ((*shape)[2] % factor != 0 || (*shape)[3] % factor != 0)) continue;
    const ItemPlan plan = processor.plan_image(image.width_px, image.height_px);
    ByteVector pixels(plan.pixel_bytes);
    processor.fill_frame(plan, 0, {image.rgb.data(), image.width_px, image.height_px}, pixels);
    if (whole) {
      EXPECT_EQ(plan.resized_height_px, (*shape)[2]);
      EXPECT_EQ(plan.resized_width_px, (*shape)[3]);
    } else {
      EXPECT_EQ(plan.spec.input_rows, (*shape)[0]);
    }
    expect_bytes(file, name + ".pixel_values_u8",
                 whole ? planes_of(pixels) : patches_of(processor.processing(), plan, pixels));
    ++compared;
  }
  return compared;
}

/// Folders of families that are known and whose items are grids of patches.
std::vector<std::string> grid_folders() {
  std::vector<std::string> folders;
  for (const std::string& root : test::golden_roots()) {
    for (const std::string& name : test::golden_families(root, "preprocess.safetensors")) {
      const std::string folder = root + "/" + name;
      const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
      if (test::is_supported(folder) &&
          plan_model(files, {})->processor().plan_image(64, 64).has_grid_thw) {
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
  const SafetensorsFile sizes(GetParam() + "/preprocess.safetensors");
  int compared = compare(processor, sizes, raw_cases(sizes));
  const SafetensorsFile images(GetParam() + "/golden.safetensors");
  compared += compare(processor, images, image_cases(GetParam()));
  EXPECT_GT(compared, 0);
}

TEST_P(GoldenPatches, OfAVideoAreThoseOfTheReference) {
  const SafetensorsFile file(GetParam() + "/golden.safetensors");
  if (file.find("video.frames") == nullptr) GTEST_SKIP() << "the reference has no video";
  const auto planner = plan_model(checkpoint::read_hf_config(GetParam()), {});
  const auto& processor = dynamic_cast<const GridProcessor&>(planner->processor());
  const ConstTensorView stored = file.tensor("video.frames");
  const std::int64_t width = stored.shape[2];
  const std::int64_t height = stored.shape[1];
  const ItemPlan plan = processor.plan_video(stored.shape[0], width, height);
  ByteVector pixels(plan.pixel_bytes);
  for (std::int64_t f = 0; f < stored.shape[0]; ++f) {
    processor.fill_frame(
        plan, f, {stored.as<std::uint8_t>() + f * height * width * 3, width, height}, pixels);
  }
  expect_bytes(file, "video.in.pixel_values_videos_u8",
               patches_of(processor.processing(), plan, pixels));
}

INSTANTIATE_TEST_SUITE_P(Folders, GoldenPatches, ::testing::ValuesIn(grid_folders()),
                         [](const auto& folder) {
                           const std::filesystem::path path(folder.param);
                           return path.filename().string() + std::to_string(folder.index);
                         });

}  // namespace
}  // namespace fovea::common
