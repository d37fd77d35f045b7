#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "media/bytes.h"

// The segments of a JPEG file, read before anything is decoded.

namespace fovea::media {

struct JpegSegment {
  std::uint8_t marker;
  Bytes payload;
};

/// Walks the segments of a file and skips entropy-coded bytes and garbage.
class JpegSegments {
 public:
  static constexpr std::uint8_t kEndOfImage = 0xD9;
  static constexpr std::uint8_t kStartOfScan = 0xDA;
  static constexpr std::uint8_t kApp1 = 0xE1;

  explicit JpegSegments(Bytes file) : rest_(file) {}

  /// The next segment, or nothing if the file ends or a length points beyond its end.
  std::optional<JpegSegment> next();
  /// Behind the segment that next() returned last.
  [[nodiscard]] std::size_t num_bytes_left() const noexcept { return rest_.size(); }

 private:
  /// Moves to the next FF that has a byte behind it; false if there is none.
  bool skip_to_marker_prefix();

  Bytes rest_;
};

/// A colour component of a frame.
struct JpegComponent {
  std::uint8_t id;
  int horizontal;  ///< sampling factors, 1 to 4
  int vertical;
};

/// The facts of a frame header, and whether the decoder has to keep its coefficients.
struct JpegFrame {
  int precision_bits = 8;
  std::int64_t height_px = 0;
  std::int64_t width_px = 0;
  int num_components = 0;
  std::array<JpegComponent, 4> components{};  ///< the first of them
  bool is_progressive = false;
  bool is_arithmetic = false;  ///< coded with the arithmetic coder instead of Huffman's codes
  bool has_several_scans = false;

  /// The components that are described, at most four.
  [[nodiscard]] std::span<const JpegComponent> described() const noexcept;
  /// Blocks of 8 x 8 samples that a row of this component has, and rows of them, those included
  /// that fill the last MCU.
  [[nodiscard]] std::int64_t blocks_across(const JpegComponent& component) const noexcept;
  [[nodiscard]] std::int64_t blocks_down(const JpegComponent& component) const noexcept;
};

/// Reads up to the first scan; a file that ends before it has a single one.
/// @param name of the image, for messages.
/// @throws Error(kCorruptData) if there is no frame header or it is broken.
[[nodiscard]] JpegFrame read_jpeg_frame(Bytes file, std::string_view name);

/// Host memory that libjpeg takes for such a frame: coefficients if there are several scans, 2
/// bytes per sample, and rows of samples in any case.
[[nodiscard]] std::size_t jpeg_decoder_bytes(const JpegFrame& frame) noexcept;

/// Scans of a file that are decoded, and blocks in all of them together. Ordinary progressive files
/// have about ten scans: 12 megapixels may have more than a hundred, and the largest image twenty.
inline constexpr std::int64_t kMostJpegScans = 500;
inline constexpr std::int64_t kMostJpegBlocks = std::int64_t{1} << 25;
/// As which a block of the arithmetic coder counts: no byte of the file has to stand behind it, and
/// each of its coefficients costs as much as an empty block of Huffman's codes.
inline constexpr std::int64_t kArithmeticBlockCost = 8;

/// Refuses files of more scans or blocks than these (kInvalidArgument, with both numbers), and
/// files without an end-of-image marker (kCorruptData) unless they may hold all pixels without it:
/// those of one scan of Huffman's codes, with a bit or more for every block.
void check_jpeg_scans(Bytes file, const JpegFrame& frame, std::string_view name);

}  // namespace fovea::media
