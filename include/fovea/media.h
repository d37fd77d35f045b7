#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fovea/export.h"
#include "fovea/options.h"
#include "fovea/row_block.h"

namespace fovea {

enum class Modality : std::uint8_t { kImage, kVideo };
/// "image" or "video".
[[nodiscard]] constexpr const char* to_string(Modality modality) noexcept {
  return modality == Modality::kImage ? "image" : "video";
}

/// Bytes in memory that nobody changes. A copy shares them and has a part in what keeps them.
class MediaBytes {
 public:
  MediaBytes() noexcept = default;
  /// Takes the bytes over; they go with the last copy. @throws Error(kOutOfMemory).
  FOVEA_API MediaBytes(std::vector<std::uint8_t> bytes);  // NOLINT: a vector of bytes is bytes
  /// Copies a few. @throws Error(kOutOfMemory).
  FOVEA_API MediaBytes(std::initializer_list<std::uint8_t> bytes);
  /// Refers to bytes that stay where they are: a request, an array of another library. Nothing is
  /// copied. @param owner keeps them until the last copy goes; null: the caller does.
  MediaBytes(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> owner) noexcept
      : bytes_(bytes), owner_(std::move(owner)) {}

  [[nodiscard]] std::span<const std::uint8_t> view() const noexcept { return bytes_; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::shared_ptr<const void> owner_;
};

// What an item can be made of.

/// An encoded image, or a video container, in a file that encode() reads.
struct EncodedFile {
  std::string path;
};

/// Encoded images in files that encode() reads: the already sampled frames of a video.
struct FrameFiles {
  std::vector<std::string> paths;
};

/// An encoded image, or a video container.
struct EncodedBytes {
  MediaBytes bytes;
};

/// Encoded images: the already sampled frames of a video.
struct EncodedFrames {
  std::vector<MediaBytes> frames;
};

/// Interleaved 8-bit RGB: num_frames images of height_px x width_px, one after the other.
struct RgbFrames {
  MediaBytes bytes;
  std::int64_t width_px = 0;
  std::int64_t height_px = 0;
  std::int64_t num_frames = 1;
};

/// A matrix of num_rows x row_width elements, row-major.
struct RowMatrix {
  MediaBytes bytes;
  RowDType dtype = RowDType::kFloat32;
  std::int64_t num_rows = 0;
  std::int64_t row_width = 0;
};

/// What a processor returns for an item: a row for each patch, and the grid in patches.
struct PixelValues {
  RowMatrix patches;
  std::array<std::int64_t, 3> grid_thw{};
};

/// The same before normalisation: num_patches x patch_dim bytes.
struct PixelBytes {
  MediaBytes patches;
  std::int64_t num_patches = 0;
  std::int64_t patch_dim = 0;
  std::array<std::int64_t, 3> grid_thw{};
};

/// The same in memory of the caller on the device of the engine, where they stay until their rows
/// are there: on a GPU of it, behind what `stream` holds at the time of the call, or in host memory
/// of an engine on the CPU. They do not touch the host, and an image has all frames of its patches.
struct PixelBlock {
  const std::uint8_t* data = nullptr;  ///< num_patches x patch_dim bytes, row-major
  int device = RowBlock::kHost;        ///< kHost, or the number of a GPU as the driver counts
  CallerStream stream = {};            ///< kNone: the bytes are there
  std::int64_t num_patches = 0;
  std::int64_t patch_dim = 0;
  std::array<std::int64_t, 3> grid_thw{};
  std::shared_ptr<const void> owner = {};  ///< keeps the memory until the last copy goes
};

/// Finished embeddings. What else is known about them is for the result.
struct PrecomputedRows {
  RowMatrix rows;
  std::optional<std::array<std::int64_t, 3>> grid_thw;
  std::optional<std::vector<std::int64_t>> retained;
};

/// Finished embeddings in memory of the caller, row_width elements wide.
struct PrecomputedBlock {
  RowBlock block;
  std::int64_t row_width = 0;
  std::optional<std::array<std::int64_t, 3>> grid_thw;  ///< for the result
  std::optional<std::vector<std::int64_t>> retained;    ///< for the result
};

/// One image or video to encode, or its pixel values, or its rows. Make it with one of the
/// functions below. Copies share bytes in memory; files are read by encode().
struct MediaItem {
  using Source =
      std::variant<EncodedFile, FrameFiles, EncodedBytes, EncodedFrames, RgbFrames, PixelValues,
                   PixelBytes, PixelBlock, PrecomputedRows, PrecomputedBlock>;

  Modality modality = Modality::kImage;
  std::string name;  ///< for messages and metadata: the path, or what the caller chose
  double fps = 2.0;  ///< of the sampled frames; containers are sampled at this rate
  Source source;
  /// Options of the item for the checkpoint's processor, in the place of those that its files say:
  /// a JSON object, as in `{"max_pixels": 100352}`, with keys as in processor files. Keys in its
  /// objects `images_kwargs` and `videos_kwargs` are for items of that modality alone; other keys
  /// concern those whose family takes them (docs/preprocessing.md, "Options of an item"). Empty:
  /// none. Rows of equal media with other options have other keys.
  std::string mm_processor_kwargs = {};

  /// The files that the item is read from; none of one that is in memory.
  [[nodiscard]] FOVEA_API std::span<const std::string> paths() const noexcept;
  /// The bytes in memory, where they lie in one piece: all but those of EncodedFrames, PixelBlock
  /// and PrecomputedBlock.
  [[nodiscard]] FOVEA_API std::span<const std::uint8_t> content() const noexcept;
  /// Bytes of content(), or of all EncodedFrames.
  [[nodiscard]] FOVEA_API std::size_t num_bytes() const noexcept;
  /// Frames that the item is given as; 1 for all but FrameFiles, EncodedFrames and RgbFrames.
  [[nodiscard]] FOVEA_API std::int64_t num_frames() const noexcept;
};

/// An encoded image (JPEG, PNG, WebP, BMP, GIF, TIFF, AVIF, HEIC) in a file. The file is not looked
/// at until encode() reads it.
[[nodiscard]] FOVEA_API MediaItem image_file(std::string path);
/// An encoded image in memory. `name` appears in error messages.
[[nodiscard]] FOVEA_API MediaItem image_bytes(MediaBytes bytes, std::string name);
/// Decoded pixels: rgb holds height_px * width_px * 3 bytes, row-major, R, G, B interleaved.
/// encode() refuses (kInvalidArgument) another number of bytes and sizes beyond MediaLimits.
[[nodiscard]] FOVEA_API MediaItem image_rgb(MediaBytes rgb, std::int64_t width_px,
                                            std::int64_t height_px, std::string name);
/// Paths of the .jpg, .jpeg, .png, .webp, .bmp, .gif, .tif, .tiff, .avif, .heic, .heif and .hif
/// files of a directory, sorted by name; the case of the extension does not matter.
/// @throws Error(kNotFound) if there are none, Error(kIo) with the system's reason.
[[nodiscard]] FOVEA_API std::vector<std::string> images_in(const std::string& directory);
/// A video: a container file, or a directory whose images_in() are the frames, already sampled at
/// `fps`.
/// @throws Error(kNotFound) if there is nothing at `path`, or no image in a directory; Error(kIo)
/// with the system's reason.
[[nodiscard]] FOVEA_API MediaItem video_path(const std::string& path, double fps = 2.0);
/// A video container in memory, sampled at `fps`. `name` appears in error messages.
[[nodiscard]] FOVEA_API MediaItem video_bytes(MediaBytes bytes, std::string name, double fps = 2.0);
/// Decoded frames of equal size, already sampled at `fps`: num_frames * height_px * width_px * 3
/// bytes, one frame after the other, each as in image_rgb(). encode() refuses as for image_rgb().
[[nodiscard]] FOVEA_API MediaItem video_rgb(MediaBytes rgb, std::int64_t num_frames,
                                            std::int64_t width_px, std::int64_t height_px,
                                            double fps, std::string name);
/// Encoded images in memory, the frames of a video that are already sampled at `fps`; messages call
/// them `name`[0] and so on.
[[nodiscard]] FOVEA_API MediaItem video_frames(std::vector<MediaBytes> frames, std::string name,
                                               double fps = 2.0);
/// What a Hugging Face processor returns for an image: `pixel_values`, num_patches * patch_dim
/// values of `dtype`, row-major and in the processor's order, and the item's row of
/// `image_grid_thw`. For a video (`pixel_values_videos`, `video_grid_thw`) set `modality`
/// afterwards. The rows of the item are bit-equal to those of the image itself, because each value
/// is turned back into the 8-bit value that it came from. encode() refuses (kInvalidArgument)
/// values that come from no 8-bit image or from another normalisation, and sizes that contradict
/// each other; families without a grid are kUnsupported.
[[nodiscard]] FOVEA_API MediaItem pixel_values(MediaBytes bytes, RowDType dtype,
                                               std::int64_t num_patches, std::int64_t patch_dim,
                                               const std::array<std::int64_t, 3>& grid_thw,
                                               std::string name);
/// As above for a processor that leaves rescaling and normalising to the device (vLLM's
/// `mm_device_do_normalize`): bytes of the resized image in the order of its pixel values, which
/// nothing has to be turned back into. Sizes are refused as above.
[[nodiscard]] FOVEA_API MediaItem pixel_bytes(MediaBytes bytes, std::int64_t num_patches,
                                              std::int64_t patch_dim,
                                              const std::array<std::int64_t, 3>& grid_thw,
                                              std::string name);
/// As above for bytes that are on the device of the engine (PixelBlock). They have no content for
/// keys: encoder caches do not keep their rows. encode() refuses (kInvalidArgument) memory that
/// lies elsewhere than the block says, and families whose processor returns patches line by line,
/// not token by token (kUnsupported).
[[nodiscard]] FOVEA_API MediaItem pixel_block(PixelBlock block, std::string name);
/// The items of a safetensors file that holds what a processor returned: first the images of
/// `pixel_values` and `image_grid_thw`, then the videos of `pixel_values_videos` and
/// `video_grid_thw`, in the order of their grids. Values are floats, or uint8 as for pixel_bytes().
/// Other tensors are ignored. Reads the file.
/// @throws Error(kNotFound) if there is no file or it holds no pixel values, Error(kCorruptData) if
/// it is no safetensors file or its tensors do not fit each other, Error(kIo).
[[nodiscard]] FOVEA_API std::vector<MediaItem> pixel_values_file(const std::string& path);
/// Embeddings that were computed earlier, row-major: num_rows * row_width elements of `dtype`.
/// encode() returns them in their place, converted to the dtype of the call. The tower does not run
/// for them, and Stats counts them as skipped with the reason "precomputed". num_rows may be 0.
/// encode() refuses (kInvalidArgument) a number of bytes that does not fit, and a row_width other
/// than that of the model. `modality` and the grid of the source may be set afterwards.
[[nodiscard]] FOVEA_API MediaItem precomputed_rows(MediaBytes bytes, RowDType dtype,
                                                   std::int64_t num_rows, std::int64_t row_width,
                                                   std::string name);

/// As above for rows in memory of the caller, on the host or on a GPU, which the item refers to: it
/// has to stay until encode() returns, with a stream until that has passed its work. Rows on a GPU
/// need an engine on GPUs. encode() refuses blocks as it refuses destinations.
[[nodiscard]] FOVEA_API MediaItem precomputed_rows(const RowBlock& block, std::int64_t row_width,
                                                   std::string name);

}  // namespace fovea
