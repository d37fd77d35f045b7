#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fovea/export.h"
#include "fovea/options.h"

namespace fovea {

enum class Modality : std::uint8_t { kImage, kVideo };

/// One picture or video to encode, or the rows of one. Make it with one of the functions below.
struct MediaItem {
  enum class Source : std::uint8_t {
    kFile,        ///< `paths[0]`: an encoded picture, or a video container
    kFrameFiles,  ///< `paths`: encoded pictures, the already sampled frames of a video
    kBytes,       ///< `bytes`: an encoded picture
    kRgb,         ///< `bytes`: interleaved 8-bit RGB, num_frames pictures of width_px x height_px
    kRows,        ///< `bytes`: finished embeddings, num_rows x row_width elements of row_dtype
  };

  Modality modality = Modality::kImage;
  Source source = Source::kFile;
  std::string name;  ///< for messages and metadata: the path, or what the caller chose
  std::vector<std::string> paths;
  std::vector<std::uint8_t> bytes;
  std::int64_t width_px = 0;
  std::int64_t height_px = 0;
  std::int64_t num_frames = 1;
  double fps = 2.0;  ///< of the sampled frames; asks for this rate when a container is sampled

  /// Of kRows alone.
  RowDType row_dtype = RowDType::kFloat32;
  std::int64_t num_rows = 0;
  std::int64_t row_width = 0;
  std::optional<std::array<std::int64_t, 3>> grid_thw;  ///< handed on with the rows
};

/// An encoded picture (JPEG, PNG, WebP) in a file.
[[nodiscard]] FOVEA_API MediaItem image_file(std::string path);
/// An encoded picture in memory. `name` appears in error messages.
[[nodiscard]] FOVEA_API MediaItem image_bytes(std::vector<std::uint8_t> bytes, std::string name);
/// Decoded pixels: rgb holds height_px * width_px * 3 bytes, row-major.
[[nodiscard]] FOVEA_API MediaItem image_rgb(std::vector<std::uint8_t> rgb, std::int64_t width_px,
                                            std::int64_t height_px, std::string name);
/// A video given as a container file, or as a directory of frame pictures sorted by name that are
/// taken as already sampled at `fps`.
/// @throws Error(kNotFound) if there is nothing at `path` or the directory has no files.
[[nodiscard]] FOVEA_API MediaItem video_path(const std::string& path, double fps = 2.0);
/// Decoded frames of equal size, already sampled at `fps`: num_frames * height_px * width_px * 3
/// bytes.
[[nodiscard]] FOVEA_API MediaItem video_rgb(std::vector<std::uint8_t> rgb, std::int64_t num_frames,
                                            std::int64_t width_px, std::int64_t height_px,
                                            double fps, std::string name);
/// Embeddings that somebody has computed already, row-major: num_rows * row_width elements of
/// `dtype`. encode() hands them on in their place, in the dtype of the call; no tower and no graph
/// sees them, and Stats counts them as skipped with the reason "precomputed". No rows are fine;
/// encode() refuses (kInvalidArgument) a number of bytes that does not fit, and rows as wide as no
/// row of the model. `modality` and `grid_thw` may be set afterwards.
[[nodiscard]] FOVEA_API MediaItem precomputed_rows(std::vector<std::uint8_t> bytes, RowDType dtype,
                                                   std::int64_t num_rows, std::int64_t row_width,
                                                   std::string name);

}  // namespace fovea
