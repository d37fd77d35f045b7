// What a MediaItem says about its source, and the makers of items.
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
  constexpr std::array<std::string_view, 12> kExtensions{".jpg",  ".jpeg", ".png",  ".webp",
                                                         ".bmp",  ".gif",  ".tif",  ".tiff",
                                                         ".avif", ".heic", ".heif", ".hif"};
  std::string extension = name.extension().string();
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::find(kExtensions, extension) != kExtensions.end();
}

/// The one matrix or run of bytes of a source, if it has one.
struct Content {
  std::span<const std::uint8_t> operator()(const EncodedBytes& source) const noexcept {
    return source.bytes.view();
  }
  std::span<const std::uint8_t> operator()(const RgbFrames& source) const noexcept {
    return source.bytes.view();
  }
  std::span<const std::uint8_t> operator()(const PixelValues& source) const noexcept {
    return source.patches.bytes.view();
  }
  std::span<const std::uint8_t> operator()(const PixelBytes& source) const noexcept {
    return source.patches.view();
  }
  std::span<const std::uint8_t> operator()(const PrecomputedRows& source) const noexcept {
    return source.rows.bytes.view();
  }
  std::span<const std::uint8_t> operator()(const auto&) const noexcept { return {}; }
};

}  // namespace

MediaBytes::MediaBytes(std::vector<std::uint8_t> bytes) try {
  const auto owned = std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes));
  bytes_ = *owned;
  owner_ = owned;
} catch (...) {
  rethrow_as_error();
}

MediaBytes::MediaBytes(std::initializer_list<std::uint8_t> bytes) try
    : MediaBytes(std::vector<std::uint8_t>(bytes)) {
} catch (...) {
  rethrow_as_error();
}

std::span<const std::string> MediaItem::paths() const noexcept {
  if (const auto* const file = std::get_if<EncodedFile>(&source)) return {&file->path, 1};
  if (const auto* const frames = std::get_if<FrameFiles>(&source)) return frames->paths;
  return {};
}

std::span<const std::uint8_t> MediaItem::content() const noexcept {
  return std::visit(Content(), source);
}

std::size_t MediaItem::num_bytes() const noexcept {
  std::size_t bytes = content().size();
  if (const auto* const encoded = std::get_if<EncodedFrames>(&source)) {
    for (const MediaBytes& frame : encoded->frames) bytes += frame.view().size();
  }
  return bytes;
}

std::int64_t MediaItem::num_frames() const noexcept {
  if (const auto* const files = std::get_if<FrameFiles>(&source)) return std::ssize(files->paths);
  if (const auto* const frames = std::get_if<EncodedFrames>(&source)) {
    return std::ssize(frames->frames);
  }
  const auto* const rgb = std::get_if<RgbFrames>(&source);
  return rgb != nullptr ? rgb->num_frames : 1;
}

MediaItem image_file(std::string path) try {
  std::string name = path;
  return {.name = std::move(name), .source = EncodedFile{std::move(path)}};
} catch (...) {
  rethrow_as_error();
}

MediaItem image_bytes(MediaBytes bytes, std::string name) {
  return {.name = std::move(name), .source = EncodedBytes{std::move(bytes)}};
}

MediaItem image_rgb(MediaBytes rgb, std::int64_t width_px, std::int64_t height_px,
                    std::string name) {
  return {.name = std::move(name), .source = RgbFrames{std::move(rgb), width_px, height_px}};
}

MediaItem video_rgb(MediaBytes rgb, std::int64_t num_frames, std::int64_t width_px,
                    std::int64_t height_px, double fps, std::string name) {
  return {.modality = Modality::kVideo,
          .name = std::move(name),
          .fps = fps,
          .source = RgbFrames{std::move(rgb), width_px, height_px, num_frames}};
}

MediaItem video_bytes(MediaBytes bytes, std::string name, double fps) {
  return {.modality = Modality::kVideo,
          .name = std::move(name),
          .fps = fps,
          .source = EncodedBytes{std::move(bytes)}};
}

MediaItem video_frames(std::vector<MediaBytes> frames, std::string name, double fps) {
  return {.modality = Modality::kVideo,
          .name = std::move(name),
          .fps = fps,
          .source = EncodedFrames{std::move(frames)}};
}

MediaItem pixel_values(MediaBytes bytes, RowDType dtype, std::int64_t num_patches,
                       std::int64_t patch_dim, const std::array<std::int64_t, 3>& grid_thw,
                       std::string name) {
  return {.name = std::move(name),
          .source = PixelValues{{std::move(bytes), dtype, num_patches, patch_dim}, grid_thw}};
}

MediaItem pixel_bytes(MediaBytes bytes, std::int64_t num_patches, std::int64_t patch_dim,
                      const std::array<std::int64_t, 3>& grid_thw, std::string name) {
  return {.name = std::move(name),
          .source = PixelBytes{std::move(bytes), num_patches, patch_dim, grid_thw}};
}

MediaItem pixel_block(PixelBlock block, std::string name) {
  return {.name = std::move(name), .source = std::move(block)};
}

MediaItem precomputed_rows(MediaBytes bytes, RowDType dtype, std::int64_t num_rows,
                           std::int64_t row_width, std::string name) {
  return {.name = std::move(name),
          .source = PrecomputedRows{.rows = {std::move(bytes), dtype, num_rows, row_width}}};
}

MediaItem precomputed_rows(const RowBlock& block, std::int64_t row_width, std::string name) {
  return {.name = std::move(name),
          .source = PrecomputedBlock{.block = block, .row_width = row_width}};
}

MediaItem precomputed(const Embedding& rows) try {
  FOVEA_CHECK(!rows.error, kInvalidArgument, rows.name, ": failed and has no rows to hand on");
  FOVEA_CHECK(rows.has_data(), kInvalidArgument, rows.name,
              ": its rows are in memory of the caller, not here");
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(rows.data.data());
  std::vector<std::uint8_t> copy(bytes, bytes + rows.data.size());
  return {.modality = rows.modality,
          .name = rows.name,
          .source = PrecomputedRows{.rows = {std::move(copy), rows.dtype, rows.rows, rows.width},
                                    .grid_thw = rows.grid_thw,
                                    .retained = rows.retained}};
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
              ": expected .jpg, .jpeg, .png, .webp, .bmp, .gif, .tif, .tiff, .avif, .heic, .heif "
              "or .hif files, found none");
  return files;
} catch (...) {
  rethrow_as_error();
}

MediaItem video_path(const std::string& path, double fps) try {
  namespace fs = std::filesystem;
  std::error_code failure;
  FOVEA_CHECK(fs::exists(path, failure), kNotFound, path, ": no such video file or directory");
  MediaItem item{.modality = Modality::kVideo, .name = path, .fps = fps};
  if (fs::is_directory(path, failure)) {
    item.source = FrameFiles{images_in(path)};
  } else {
    item.source = EncodedFile{path};
  }
  return item;
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
