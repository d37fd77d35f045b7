#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fovea/export.h"

namespace fovea {

enum class Modality : std::uint8_t { kImage, kVideo };

/// One picture or video to encode. Make it with one of the functions below.
struct MediaItem {
  enum class Source : std::uint8_t {
    kFile,        ///< `paths[0]`: an encoded picture, or a video container
    kFrameFiles,  ///< `paths`: encoded pictures, the already sampled frames of a video
    kBytes,       ///< `bytes`: an encoded picture
    kRgb,         ///< `bytes`: interleaved 8-bit RGB, num_frames pictures of width_px x height_px
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

}  // namespace fovea
