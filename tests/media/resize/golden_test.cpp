// Decode and resize against the bytes that the reference processors produced. Resized sizes follow
// from the grids in the files; only what the grid leaves open is worked out here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "checkpoint/safetensors.h"
#include "core/file.h"
#include "media/decode_image.h"
#include "media/resize/resize.h"
#include "support/golden.h"

namespace fovea::media {
namespace {

using Bytes = std::vector<std::uint8_t>;
using checkpoint::SafetensorsFile;

constexpr ResizeEngine P = ResizeEngine::kPillow;
constexpr ResizeEngine U = ResizeEngine::kTorchvision;

Bytes bytes_of(const SafetensorsFile& file, const std::string& name) {
  const ConstTensorView view = file.tensor(name);
  return {view.as<std::uint8_t>(), view.as<std::uint8_t>() + view.bytes()};
}

template <class T>
std::vector<std::int64_t> integers_of(const SafetensorsFile& file, const std::string& name) {
  const ConstTensorView view = file.tensor(name);
  std::vector<T> values(view.bytes() / sizeof(T));
  std::memcpy(values.data(), view.data, view.bytes());  // tensors in a file are not aligned
  return {values.begin(), values.end()};
}

/// Images as the reference saw them, by the prefix of their tensors.
struct Case {
  std::string prefix;
  Image image;
};

/// `<WxH>.rgb` of preprocess.safetensors.
std::vector<Case> raw_cases(const SafetensorsFile& file) {
  std::vector<Case> cases;
  for (const checkpoint::TensorEntry& tensor : file.header().tensors)
    if (tensor.name.ends_with(".rgb"))
      cases.push_back({tensor.name.substr(0, tensor.name.size() - 3),
                       {tensor.shape[1], tensor.shape[0], bytes_of(file, tensor.name)}});
  return cases;
}

/// The files of images/ whose inputs are listed in golden.safetensors.
std::vector<Case> image_cases(const std::string& folder, const SafetensorsFile& file,
                              const std::string& key) {
  std::vector<Case> cases;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/images")) {
    const std::string prefix = entry.path().stem().string() + ".in.";
    if (file.find(prefix + key) != nullptr)
      cases.push_back({prefix, decode_image(read_file(entry.path().string(), 1 << 24),
                                            entry.path().string(), {})});
  }
  return cases;
}

Image resized(const Image& image, std::int64_t width, std::int64_t height, ResizeEngine engine,
              ResizeFilter filter = ResizeFilter::kBicubic) {
  Image result{width, height, Bytes(static_cast<std::size_t>(width * height * 3))};
  resize_rgb({.src = image.rgb,
              .src_width_px = image.width_px,
              .src_height_px = image.height_px,
              .dst = result.rgb,
              .dst_width_px = width,
              .dst_height_px = height,
              .engine = engine,
              .filter = filter});
  return result;
}

std::uint8_t at(const Image& image, std::int64_t x, std::int64_t y, std::int64_t c) {
  return image.rgb[static_cast<std::size_t>((y * image.width_px + x) * 3 + c)];
}

/// The image at (x, y) of a canvas filled with one value.
Image placed(const Image& image, std::int64_t width, std::int64_t height, std::int64_t x,
             std::int64_t y, std::uint8_t fill) {
  Image canvas{width, height, Bytes(static_cast<std::size_t>(width * height * 3), fill)};
  for (std::int64_t row = 0; row < image.height_px; ++row)
    std::copy_n(image.rgb.begin() + row * image.width_px * 3, image.width_px * 3,
                canvas.rgb.begin() + ((y + row) * width + x) * 3);
  return canvas;
}

/// A square as [3, side, side].
void append_tile(const Image& image, std::int64_t left, std::int64_t top, std::int64_t side,
                 Bytes& out) {
  const std::size_t before = out.size();
  out.resize(before + static_cast<std::size_t>(3 * side * side));
  std::uint8_t* to = out.data() + before;
  for (std::int64_t c = 0; c < 3; ++c)
    for (std::int64_t y = 0; y < side; ++y) {
      const std::uint8_t* from = image.rgb.data() + ((top + y) * image.width_px + left) * 3 + c;
      for (std::int64_t x = 0; x < side; ++x, from += 3) *to++ = *from;
    }
}

/// All tiles of an image, row-major, as [tiles, 3, side, side].
void append_tiles(const Image& image, std::int64_t side, Bytes& out) {
  for (std::int64_t y = 0; y < image.height_px; y += side)
    for (std::int64_t x = 0; x < image.width_px; x += side) append_tile(image, x, y, side, out);
}

/// Patches in groups of merge x merge, as [patches, 3, frames, patch, patch] with equal frames.
Bytes patches(const Image& image, std::int64_t patch, std::int64_t merge, std::int64_t frames) {
  Bytes out;
  const std::int64_t block = patch * merge;
  for (std::int64_t top = 0; top < image.height_px; top += block)
    for (std::int64_t left = 0; left < image.width_px; left += block)
      for (std::int64_t my = 0; my < merge; ++my)
        for (std::int64_t mx = 0; mx < merge; ++mx)
          for (std::int64_t c = 0; c < 3; ++c)
            for (std::int64_t frame = 0; frame < frames; ++frame)
              for (std::int64_t y = 0; y < patch; ++y)
                for (std::int64_t x = 0; x < patch; ++x)
                  out.push_back(at(image, left + mx * patch + x, top + my * patch + y, c));
  return out;
}

/// Calls check(cases, file) for every golden folder of a family; both kinds of cases.
template <class Check>
void for_each_folder(const std::string& family, const std::string& key, const Check& check) {
  const std::vector<std::string> raw = test::golden_folders(family, "preprocess.safetensors");
  const std::vector<std::string> images = test::golden_folders(family, "golden.safetensors");
  if (raw.empty() && images.empty()) GTEST_SKIP() << "no golden folder of " << family;
  std::size_t num_cases = 0;
  const auto check_all = [&](const SafetensorsFile& file, const std::vector<Case>& cases) {
    num_cases += cases.size();
    for (const Case& one : cases) {
      SCOPED_TRACE(one.prefix);
      check(file, one);
    }
  };
  for (const std::string& folder : raw) {
    const SafetensorsFile file(folder + "/preprocess.safetensors");
    check_all(file, raw_cases(file));
  }
  for (const std::string& folder : images) {
    const SafetensorsFile file(folder + "/golden.safetensors");
    check_all(file, image_cases(folder, file, key));
  }
  EXPECT_GT(num_cases, 0u);
}

// Families with a patch grid: the resized size is grid * patch.

void expect_grid_family(const std::string& family) {
  for_each_folder(family, "pixel_values_u8", [](const SafetensorsFile& file, const Case& one) {
    const auto grid = integers_of<std::int64_t>(file, one.prefix + "image_grid_thw");
    const std::int64_t frame_values = file.tensor(one.prefix + "pixel_values_u8").shape[2];
    constexpr std::int64_t kFrames = 2;
    const auto patch = static_cast<std::int64_t>(
        std::sqrt(static_cast<double>(frame_values) / static_cast<double>(kFrames)));
    const Image image = resized(one.image, grid[2] * patch, grid[1] * patch, U);
    EXPECT_EQ(patches(image, patch, 2, kFrames), bytes_of(file, one.prefix + "pixel_values_u8"));
  });
}

TEST(GoldenResize, Qwen2Vl) { expect_grid_family("qwen2_vl"); }
TEST(GoldenResize, Qwen25Vl) { expect_grid_family("qwen2_5_vl"); }
TEST(GoldenResize, Qwen3Vl) { expect_grid_family("qwen3_vl"); }
TEST(GoldenResize, Qwen35) { expect_grid_family("qwen3_5"); }
TEST(GoldenResize, Glm4v) { expect_grid_family("glm4v"); }

TEST(GoldenResize, KimiVl) {
  // Shrunk only above the limit of 256 patches of the tiny model; the grid includes padding.
  constexpr std::int64_t kPatch = 14;
  constexpr double kLimit = 256.0;
  for_each_folder("kimi_vl", "pixel_values_u8", [&](const SafetensorsFile& file, const Case& one) {
    const auto grid = integers_of<std::int64_t>(file, one.prefix + "image_grid_hws");
    Image image = one.image;
    const auto num_patches =
        static_cast<double>((image.width_px / kPatch) * (image.height_px / kPatch));
    if (num_patches > kLimit) {
      const double scale = std::sqrt(kLimit / num_patches);
      const auto scaled = [&](std::int64_t side) {
        return static_cast<std::int64_t>(static_cast<double>(side) * scale);
      };
      image = resized(image, scaled(image.width_px), scaled(image.height_px), P);
    }
    image = placed(image, grid[1] * kPatch, grid[0] * kPatch, 0, 0, 0);
    EXPECT_EQ(patches(image, kPatch, 1, 1), bytes_of(file, one.prefix + "pixel_values_u8"));
  });
}

// Families with tiles.

struct Grid {
  std::int64_t columns;
  std::int64_t rows;
};

/// Of the grids with that many tiles the one whose shape is closest to the image's.
Grid closest_grid(const Image& image, std::int64_t num_tiles) {
  const double aspect = static_cast<double>(image.width_px) / static_cast<double>(image.height_px);
  Grid best{num_tiles, 1};
  const auto error = [&](const Grid& grid) {
    return std::abs(aspect - static_cast<double>(grid.columns) / static_cast<double>(grid.rows));
  };
  for (std::int64_t columns = 1; columns <= num_tiles; ++columns)
    if (const Grid grid{columns, num_tiles / columns};
        num_tiles % columns == 0 && error(grid) < error(best))
      best = grid;
  return best;
}

TEST(GoldenResize, Internvl) {
  for_each_folder("internvl", "pixel_values_u8", [](const SafetensorsFile& file, const Case& one) {
    const ConstTensorView expected = file.tensor(one.prefix + "pixel_values_u8");
    const std::int64_t side = expected.shape[3];
    const bool tiled = expected.shape[0] > 1;
    Bytes tiles;
    if (tiled) {
      const Grid grid = closest_grid(one.image, expected.shape[0] - 1);
      append_tiles(resized(one.image, grid.columns * side, grid.rows * side, U), side, tiles);
    }
    append_tiles(resized(one.image, side, side, U), side, tiles);
    EXPECT_EQ(tiles, bytes_of(file, one.prefix + "pixel_values_u8"));
  });
}

/// Sums of the rows or the columns of [n, 3, side, side].
std::vector<std::int64_t> sums(const Bytes& tiles, std::int64_t side, bool of_rows) {
  const auto s = static_cast<std::size_t>(side);
  std::vector<std::int64_t> result(tiles.size() / s, 0);
  const std::uint8_t* next = tiles.data();
  for (std::size_t row = 0; row < result.size(); ++row) {
    std::int64_t* const sum = result.data() + (of_rows ? row : row / s * s);
    for (std::size_t x = 0; x < s; ++x) sum[of_rows ? 0 : x] += *next++;
  }
  return result;
}

void expect_sums(const SafetensorsFile& file, const std::string& name, const Bytes& tiles,
                 std::int64_t side) {
  EXPECT_EQ(sums(tiles, side, true), integers_of<std::int32_t>(file, name + "_rowsum"));
  EXPECT_EQ(sums(tiles, side, false), integers_of<std::int32_t>(file, name + "_colsum"));
}

/// Fits an image into a square and centres it on grey (Pillow's ImageOps.pad).
Image padded_to_square(const Image& image, std::int64_t side) {
  const auto width = static_cast<double>(image.width_px);
  const auto height = static_cast<double>(image.height_px);
  const auto whole = static_cast<double>(side);
  const bool wide = image.width_px > image.height_px;
  const auto short_side =
      static_cast<std::int64_t>(std::nearbyint((wide ? height / width : width / height) * whole));
  const Image fitted = resized(image, wide ? side : short_side, wide ? short_side : side, P);
  const auto offset =
      static_cast<std::int64_t>(std::nearbyint(static_cast<double>(side - short_side) * 0.5));
  return placed(fitted, side, side, wide ? 0 : offset, wide ? offset : 0, 127);
}

TEST(GoldenResize, DeepseekOcr) {
  constexpr std::int64_t kGlobal = 1024;
  constexpr std::int64_t kLocal = 640;
  for_each_folder(
      "deepseek_ocr", "pixel_values_u8_rowsum", [&](const SafetensorsFile& file, const Case& one) {
        Bytes global;
        append_tiles(padded_to_square(one.image, kGlobal), kGlobal, global);
        expect_sums(file, one.prefix + "pixel_values_u8", global, kGlobal);

        const auto grid = integers_of<std::int64_t>(file, one.prefix + "images_spatial_crop");
        if (grid[0] * grid[1] == 1) return;
        Bytes local;
        append_tiles(resized(one.image, grid[0] * kLocal, grid[1] * kLocal, P), kLocal, local);
        expect_sums(file, one.prefix + "images_crop_u8", local, kLocal);
      });
}

/// Side of an image that fits a canvas but is not enlarged beyond one tile, in f32 as the
/// reference where the canvas decides.
struct FittedSize {
  std::int64_t width;
  std::int64_t height;
};

FittedSize fit_llama4(const Image& image, std::int64_t tile, std::int64_t canvas_width,
                      std::int64_t canvas_height) {
  const auto target_width = std::min(std::max(image.width_px, tile), canvas_width);
  const auto target_height = std::min(std::max(image.height_px, tile), canvas_height);
  const float ratio_x = static_cast<float>(target_width) / static_cast<float>(image.width_px);
  const float ratio_y = static_cast<float>(target_height) / static_cast<float>(image.height_px);
  const auto scaled = [](std::int64_t side, float ratio, std::int64_t limit) {
    const float product = static_cast<float>(side) * ratio;
    return std::max<std::int64_t>(std::min(static_cast<std::int64_t>(product), limit), 1);
  };
  if (ratio_x < ratio_y) return {target_width, scaled(image.height_px, ratio_x, target_height)};
  return {scaled(image.width_px, ratio_y, target_width), target_height};
}

TEST(GoldenResize, Llama4) {
  constexpr ResizeFilter kBilinear = ResizeFilter::kBilinear;
  for_each_folder("llama4", "pixel_values_u8", [&](const SafetensorsFile& file, const Case& one) {
    const std::int64_t side = file.tensor(one.prefix + "pixel_values_u8").shape[3];
    const auto ratio =
        integers_of<std::int64_t>(file, one.prefix + "aspect_ratios");  // rows, columns
    const std::int64_t width = ratio[1] * side;
    const std::int64_t height = ratio[0] * side;
    const FittedSize size = fit_llama4(one.image, side, width, height);
    const Image fitted = resized(one.image, size.width, size.height, U, kBilinear);
    Bytes tiles;
    append_tiles(placed(fitted, width, height, 0, 0, 0), side, tiles);
    if (ratio[0] * ratio[1] > 1)
      append_tiles(resized(one.image, side, side, U, kBilinear), side, tiles);
    EXPECT_EQ(tiles, bytes_of(file, one.prefix + "pixel_values_u8"));
  });
}

}  // namespace
}  // namespace fovea::media
