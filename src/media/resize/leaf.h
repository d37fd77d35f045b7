#pragma once

#include <cstddef>
#include <cstdint>

// The inner loops of the resize, once per instruction set. This header is included by files that
// are compiled for instruction sets the machine may lack: it holds plain data only, no inline
// function that the linker could merge with another file's.

namespace fovea::media {

inline constexpr std::int64_t kChannels = 3;

/// Taps of every output pixel are padded with zero weights to a multiple of this. The number of
/// output pixels is padded likewise, with pixels that have no taps.
inline constexpr std::int64_t kTapGroup = 4;

/// Weights of more than 16 bits are planes[0] * 2^kLowPlaneBits + planes[1].
inline constexpr int kLowPlaneBits = 12;

/// Filter of one axis as the inner loops see it; fields as in AxisWeights.
struct AxisView {
  std::int64_t out_size;
  std::int64_t taps;
  int shift;
  const std::int32_t* first;
  const std::int32_t* count;
  const std::int32_t* weight;
  const std::int16_t* planes[2];  ///< planes[1] is null where one plane is enough
};

/// Filters whole rows along x.
struct HorizontalArgs {
  const AxisView* axis;
  /// Source rows; readable from each first pixel to (taps - 1) pixels and kRowSlackBytes beyond the
  /// last.
  const std::uint8_t* const* src;
  std::uint8_t* const* dst;  ///< rows of out_size pixels; kRowSlackBytes beyond may be overwritten
};

/// Computes one output row from `count` source rows.
struct VerticalArgs {
  const AxisView* axis;
  std::int64_t row;                ///< output row
  const std::uint8_t* const* src;  ///< count[row] rows, the last one repeated up to an even number
  std::uint8_t* dst;               ///< must not overlap the source rows
  std::size_t row_bytes;           ///< nothing beyond is read or written
};

/// Bytes beyond the last pixel that a horizontal loop may touch.
inline constexpr std::size_t kRowSlackBytes = 32;

/// Most rows that a horizontal loop takes at once.
inline constexpr std::size_t kMaxRowsAtOnce = 2;

struct ResizeLeaf {
  std::size_t rows_at_once;  ///< of `horizontal`; <= kMaxRowsAtOnce
  void (*horizontal)(const HorizontalArgs& args);
  void (*vertical)(const VerticalArgs& args);
};

/// Plain C++, for every machine; also the definition of what the others must compute.
extern const ResizeLeaf kPortableLeaf;
/// AVX2.
extern const ResizeLeaf kAvx2Leaf;
/// AVX-512 F, BW and VL.
extern const ResizeLeaf kAvx512Leaf;
/// NEON of 64-bit ARM.
extern const ResizeLeaf kNeonLeaf;

}  // namespace fovea::media
