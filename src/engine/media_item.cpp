// The makers of MediaItem.
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "core/boundary.h"
#include "core/check.h"
#include "core/file.h"
#include "fovea/embedding.h"
#include "fovea/media.h"

namespace fovea {

namespace {

bool is_image_name(const std::filesystem::path& name) {
  constexpr std::array<std::string_view, 4> kExtensions{".jpg", ".jpeg", ".png", ".webp"};
  std::string extension = name.extension().string();
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::find(kExtensions, extension) != kExtensions.end();
}

/// The item, made of bytes of somebody else.
MediaItem borrowing(MediaItem item, std::span<const std::uint8_t> bytes,
                    std::shared_ptr<const void> owner) {
  item.borrowed = bytes;
  item.owner = std::move(owner);
  return item;
}

}  // namespace

MediaItem image_file(std::string path) try {
  MediaItem item;
  item.name = path;
  item.paths.push_back(std::move(path));
  return item;
} catch (...) {
  rethrow_as_error();
}

MediaItem image_bytes(std::vector<std::uint8_t> bytes, std::string name) {
  MediaItem item;
  item.source = MediaItem::Source::kBytes;
  item.name = std::move(name);
  item.bytes = std::move(bytes);
  return item;
}

MediaItem image_rgb(std::vector<std::uint8_t> rgb, std::int64_t width_px, std::int64_t height_px,
                    std::string name) {
  MediaItem item = image_bytes(std::move(rgb), std::move(name));
  item.source = MediaItem::Source::kRgb;
  item.width_px = width_px;
  item.height_px = height_px;
  return item;
}

MediaItem video_rgb(std::vector<std::uint8_t> rgb, std::int64_t num_frames, std::int64_t width_px,
                    std::int64_t height_px, double fps, std::string name) {
  MediaItem item = image_rgb(std::move(rgb), width_px, height_px, std::move(name));
  item.modality = Modality::kVideo;
  item.num_frames = num_frames;
  item.fps = fps;
  return item;
}

MediaItem video_bytes(std::vector<std::uint8_t> bytes, std::string name, double fps) {
  MediaItem item = image_bytes(std::move(bytes), std::move(name));
  item.modality = Modality::kVideo;
  item.fps = fps;
  return item;
}

MediaItem video_frames(std::vector<std::span<const std::uint8_t>> frames,
                       std::shared_ptr<const void> owner, std::string name, double fps) {
  MediaItem item;
  item.modality = Modality::kVideo;
  item.source = MediaItem::Source::kFrames;
  item.name = std::move(name);
  item.num_frames = std::ssize(frames);
  item.fps = fps;
  item.frames = std::move(frames);
  item.owner = std::move(owner);
  return item;
}

MediaItem video_frames(std::vector<std::vector<std::uint8_t>> frames, std::string name,
                       double fps) {
  const auto owner =
      std::make_shared<const std::vector<std::vector<std::uint8_t>>>(std::move(frames));
  return video_frames({owner->begin(), owner->end()}, owner, std::move(name), fps);
}

MediaItem image_bytes(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> owner,
                      std::string name) {
  return borrowing(image_bytes({}, std::move(name)), bytes, std::move(owner));
}

MediaItem image_rgb(std::span<const std::uint8_t> rgb, std::shared_ptr<const void> owner,
                    std::int64_t width_px, std::int64_t height_px, std::string name) {
  return borrowing(image_rgb({}, width_px, height_px, std::move(name)), rgb, std::move(owner));
}

MediaItem video_bytes(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> owner,
                      std::string name, double fps) {
  return borrowing(video_bytes({}, std::move(name), fps), bytes, std::move(owner));
}

MediaItem video_rgb(std::span<const std::uint8_t> rgb, std::shared_ptr<const void> owner,
                    std::int64_t num_frames, std::int64_t width_px, std::int64_t height_px,
                    double fps, std::string name) {
  return borrowing(video_rgb({}, num_frames, width_px, height_px, fps, std::move(name)), rgb,
                   std::move(owner));
}

MediaItem pixel_values(std::vector<std::uint8_t> bytes, RowDType dtype, std::int64_t num_patches,
                       std::int64_t patch_dim, const std::array<std::int64_t, 3>& grid_thw,
                       std::string name) {
  MediaItem item =
      precomputed_rows(std::move(bytes), dtype, num_patches, patch_dim, std::move(name));
  item.source = MediaItem::Source::kPixelValues;
  item.grid_thw = grid_thw;
  return item;
}

MediaItem precomputed_rows(std::vector<std::uint8_t> bytes, RowDType dtype, std::int64_t num_rows,
                           std::int64_t row_width, std::string name) {
  MediaItem item = image_bytes(std::move(bytes), std::move(name));
  item.source = MediaItem::Source::kRows;
  item.row_dtype = dtype;
  item.num_rows = num_rows;
  item.row_width = row_width;
  return item;
}

MediaItem precomputed_rows(const RowBlock& block, std::int64_t row_width, std::string name) {
  MediaItem item;
  item.source = MediaItem::Source::kRowBlock;
  item.name = std::move(name);
  item.block = block;
  item.row_width = row_width;
  return item;
}

MediaItem precomputed(const Embedding& rows) try {
  FOVEA_CHECK(!rows.error, kInvalidArgument, rows.name, ": failed and has no rows to hand on");
  FOVEA_CHECK(rows.has_data(), kInvalidArgument, rows.name,
              ": its rows are in memory of the caller, not here");
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(rows.data.data());
  MediaItem item = precomputed_rows({bytes, bytes + rows.data.size()}, rows.dtype, rows.rows,
                                    rows.width, rows.name);
  item.modality = rows.modality;
  item.grid_thw = rows.grid_thw;
  item.retained = rows.retained;
  return item;
} catch (...) {
  rethrow_as_error();
}

std::vector<std::string> images_in(const std::string& directory) try {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const std::string& name : list_directory(directory)) {
    const fs::path path = fs::path(directory) / name;
    std::error_code ignored;
    if (is_image_name(name) && fs::is_regular_file(path, ignored)) files.push_back(path.string());
  }
  FOVEA_CHECK(!files.empty(), kNotFound, directory,
              ": expected .jpg, .jpeg, .png or .webp files, found none");
  return files;
} catch (...) {
  rethrow_as_error();
}

MediaItem video_path(const std::string& path, double fps) try {
  namespace fs = std::filesystem;
  std::error_code failure;
  FOVEA_CHECK(fs::exists(path, failure), kNotFound, path, ": no such video file or directory");
  MediaItem item;
  item.modality = Modality::kVideo;
  item.name = path;
  item.fps = fps;
  if (!fs::is_directory(path, failure)) {
    item.paths.push_back(path);
    return item;
  }
  item.source = MediaItem::Source::kFrameFiles;
  item.paths = images_in(path);
  item.num_frames = static_cast<std::int64_t>(item.paths.size());
  return item;
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
