#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/export.h"
#include "fovea/options.h"
#include "fovea/row_block.h"

namespace fovea {

enum class Modality : std::uint8_t { kImage, kVideo };

/// One image or video to encode, or its pixel values, or its rows. Make it with one of the
/// functions below. It owns its bytes, or has a part in what owns them; files are read by encode().
struct MediaItem {
  enum class Source : std::uint8_t {
    kFile,         ///< `paths[0]`, the only one: an encoded image, or a video container
    kFrameFiles,   ///< `paths`: encoded images, the already sampled frames of a video
    kFrames,       ///< `frames`: encoded images, the already sampled frames of a video
    kBytes,        ///< `bytes`: an encoded image, or a video container
    kRgb,          ///< `bytes`: interleaved 8-bit RGB, num_frames images of width_px x height_px
    kPixelValues,  ///< `bytes`: num_rows patches of row_width values of row_dtype, and `grid_thw`
    kRows,         ///< `bytes`: finished embeddings, num_rows x row_width elements of row_dtype
    kRowBlock,     ///< `block`: the same, in memory of the caller, its rows row_width wide
  };

  Modality modality = Modality::kImage;
  Source source = Source::kFile;
  std::string name;  ///< for messages and metadata: the path, or what the caller chose
  std::vector<std::string> paths;
  std::vector<std::uint8_t> bytes;
  std::int64_t width_px = 0;
  std::int64_t height_px = 0;
  std::int64_t num_frames = 1;
  double fps = 2.0;  ///< of the sampled frames; containers are sampled at this rate

  /// The following members are used by kPixelValues, kRows and kRowBlock only.
  RowDType row_dtype = RowDType::kFloat32;
  std::int64_t num_rows = 0;
  std::int64_t row_width = 0;
  std::optional<std::array<std::int64_t, 3>> grid_thw;  ///< in patches; of rows: for the result
  std::optional<std::vector<std::int64_t>> retained;    ///< of rows only: for the result
  RowBlock block;                                       ///< kRowBlock only

  /// Bytes of somebody else, in place of `bytes`, which is empty then. Nobody writes to them while
  /// there is an item that refers to them.
  std::span<const std::uint8_t> borrowed;
  /// kFrames only: each an encoded image, somebody else's as `borrowed` is.
  std::vector<std::span<const std::uint8_t>> frames;
  /// Keeps `borrowed` and `frames` where they are, until the last copy of the item goes. Null: the
  /// caller does.
  std::shared_ptr<const void> owner;

  /// The bytes that the item is made of, wherever they are; not those of `frames`.
  [[nodiscard]] std::span<const std::uint8_t> content() const noexcept {
    return borrowed.empty() ? std::span(bytes) : borrowed;
  }
};

/// An encoded image (JPEG, PNG, WebP) in a file. The file is not looked at until encode() reads it.
[[nodiscard]] FOVEA_API MediaItem image_file(std::string path);
/// An encoded image in memory. `name` appears in error messages.
[[nodiscard]] FOVEA_API MediaItem image_bytes(std::vector<std::uint8_t> bytes, std::string name);
/// Decoded pixels: rgb holds height_px * width_px * 3 bytes, row-major, R, G, B interleaved.
/// encode() refuses (kInvalidArgument) another number of bytes and sizes beyond MediaLimits.
[[nodiscard]] FOVEA_API MediaItem image_rgb(std::vector<std::uint8_t> rgb, std::int64_t width_px,
                                            std::int64_t height_px, std::string name);
/// As the two above, for bytes that stay where they are: a request, an array of another library.
/// Nothing is copied. See MediaItem::borrowed and owner.
[[nodiscard]] FOVEA_API MediaItem image_bytes(std::span<const std::uint8_t> bytes,
                                              std::shared_ptr<const void> owner, std::string name);
[[nodiscard]] FOVEA_API MediaItem image_rgb(std::span<const std::uint8_t> rgb,
                                            std::shared_ptr<const void> owner,
                                            std::int64_t width_px, std::int64_t height_px,
                                            std::string name);
/// Paths of the .jpg, .jpeg, .png and .webp files of a directory, sorted by name; the case of the
/// extension does not matter.
/// @throws Error(kNotFound) if there are none, Error(kIo) with the system's reason.
[[nodiscard]] FOVEA_API std::vector<std::string> images_in(const std::string& directory);
/// A video: a container file, or a directory whose images_in() are the frames, already sampled at
/// `fps`.
/// @throws Error(kNotFound) if there is nothing at `path`, and as images_in() does.
[[nodiscard]] FOVEA_API MediaItem video_path(const std::string& path, double fps = 2.0);
/// A video container in memory, sampled at `fps`. `name` appears in error messages.
[[nodiscard]] FOVEA_API MediaItem video_bytes(std::vector<std::uint8_t> bytes, std::string name,
                                              double fps = 2.0);
/// Decoded frames of equal size, already sampled at `fps`: num_frames * height_px * width_px * 3
/// bytes, one frame after the other, each as in image_rgb(). encode() refuses as for image_rgb().
[[nodiscard]] FOVEA_API MediaItem video_rgb(std::vector<std::uint8_t> rgb, std::int64_t num_frames,
                                            std::int64_t width_px, std::int64_t height_px,
                                            double fps, std::string name);
/// Encoded images in memory, the frames of a video that are already sampled at `fps`; messages call
/// them `name`[0] and so on.
[[nodiscard]] FOVEA_API MediaItem video_frames(std::vector<std::vector<std::uint8_t>> frames,
                                               std::string name, double fps = 2.0);
/// As the three above, for bytes that stay where they are; nothing is copied.
[[nodiscard]] FOVEA_API MediaItem video_frames(std::vector<std::span<const std::uint8_t>> frames,
                                               std::shared_ptr<const void> owner, std::string name,
                                               double fps = 2.0);
[[nodiscard]] FOVEA_API MediaItem video_bytes(std::span<const std::uint8_t> bytes,
                                              std::shared_ptr<const void> owner, std::string name,
                                              double fps = 2.0);
[[nodiscard]] FOVEA_API MediaItem video_rgb(std::span<const std::uint8_t> rgb,
                                            std::shared_ptr<const void> owner,
                                            std::int64_t num_frames, std::int64_t width_px,
                                            std::int64_t height_px, double fps, std::string name);
/// What a Hugging Face processor returns for an image: `pixel_values`, num_patches * patch_dim
/// values of `dtype`, row-major and in the processor's order, and the item's row of
/// `image_grid_thw`. For a video (`pixel_values_videos`, `video_grid_thw`) set `modality`
/// afterwards. The rows of the item are bit-equal to those of the image itself, because each value
/// is turned back into the 8-bit value that it came from. encode() refuses (kInvalidArgument)
/// values that come from no 8-bit image or from another normalisation, and sizes that contradict
/// each other; families without a grid are kUnsupported.
[[nodiscard]] FOVEA_API MediaItem pixel_values(std::vector<std::uint8_t> bytes, RowDType dtype,
                                               std::int64_t num_patches, std::int64_t patch_dim,
                                               const std::array<std::int64_t, 3>& grid_thw,
                                               std::string name);
/// The items of a safetensors file that holds what a processor returned: first the images of
/// `pixel_values` and `image_grid_thw`, then the videos of `pixel_values_videos` and
/// `video_grid_thw`, in the order of their grids. Other tensors are ignored. Reads the file.
/// @throws Error(kNotFound) if there is no file or it holds no pixel values, Error(kCorruptData) if
/// it is no safetensors file or its tensors do not fit each other, Error(kIo).
[[nodiscard]] FOVEA_API std::vector<MediaItem> pixel_values_file(const std::string& path);
/// Embeddings that were computed earlier, row-major: num_rows * row_width elements of `dtype`.
/// encode() returns them in their place, converted to the dtype of the call. The tower does not run
/// for them, and Stats counts them as skipped with the reason "precomputed". num_rows may be 0.
/// encode() refuses (kInvalidArgument) a number of bytes that does not fit, and a row_width other
/// than that of the model. `modality` and `grid_thw` may be set afterwards.
[[nodiscard]] FOVEA_API MediaItem precomputed_rows(std::vector<std::uint8_t> bytes, RowDType dtype,
                                                   std::int64_t num_rows, std::int64_t row_width,
                                                   std::string name);

/// As above for rows in memory of the caller, on the host or on a GPU, which the item refers to: it
/// has to stay until encode() returns, with a stream until that has passed its work. Rows on a GPU
/// need an engine on GPUs. encode() refuses blocks as it refuses destinations.
[[nodiscard]] FOVEA_API MediaItem precomputed_rows(const RowBlock& block, std::int64_t row_width,
                                                   std::string name);

}  // namespace fovea
