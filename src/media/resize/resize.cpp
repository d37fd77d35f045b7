// Separable resize: every source row is filtered along x once, into a ring of the rows that the
// filter along y still needs; each output row is then computed from the ring. The ring stays in the
// L1 and L2 caches, so memory traffic is the source once and the result once.
#include "media/resize/resize.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/check.h"
#include "core/interrupt.h"
#include "media/resize/choose_leaf.h"
#include "media/resize/weights.h"

namespace fovea::media {
namespace {

AxisView view_of(const AxisWeights& axis) {
  return {
      .out_size = axis.out_size,
      .taps = axis.taps,
      .shift = axis.shift,
      .first = axis.first.data(),
      .count = axis.count.data(),
      .weight = axis.weight.data(),
      .planes = {axis.planes[0].data(), axis.planes[1].empty() ? nullptr : axis.planes[1].data()}};
}

AxisMargins margins_x(const ResizeArgs& args) {
  return {args.src_margins.left_px, args.src_margins.right_px};
}

AxisMargins margins_y(const ResizeArgs& args) {
  return {args.src_margins.top_px, args.src_margins.bottom_px};
}

AxisWeights weights_x(const ResizeArgs& args) {
  return make_axis_weights(args.src_width_px, args.dst_width_px, args.engine, args.filter,
                           margins_x(args));
}

AxisWeights weights_y(const ResizeArgs& args) {
  return make_axis_weights(args.src_height_px, args.dst_height_px, args.engine, args.filter,
                           margins_y(args));
}

/// Source rows filtered along x, made on demand and kept until the ring overwrites them.
class FilteredRows {
 public:
  /// @param live_rows rows that are needed at the same time.
  FilteredRows(const ResizeArgs& args, const AxisWeights& axis, const ResizeLeaf& leaf,
               std::size_t live_rows)
      : args_(args),
        leaf_(leaf),
        axis_(view_of(axis)),
        src_stride_(static_cast<std::size_t>(args.src_width_px) * kChannels),
        read_bytes_(src_stride_ + static_cast<std::size_t>(axis.taps) * kChannels + kRowSlackBytes),
        ring_stride_(static_cast<std::size_t>(args.dst_width_px) * kChannels + kRowSlackBytes),
        ring_rows_(live_rows + leaf.rows_at_once - 1),
        ring_(ring_rows_ * ring_stride_),
        padded_(leaf.rows_at_once * read_bytes_) {}

  /// Makes rows [0, end) unless they have been made.
  void make_until(std::size_t end) {
    while (num_made_ < end) make_next();
  }

  /// A row that has been made and is one of the last live_rows.
  [[nodiscard]] const std::uint8_t* row(std::size_t y) const {
    return ring_.data() + y % ring_rows_ * ring_stride_;
  }

 private:
  void make_next() {
    check_interrupt();
    std::array<const std::uint8_t*, kMaxRowsAtOnce> src{};
    std::array<std::uint8_t*, kMaxRowsAtOnce> dst{};
    const auto last = static_cast<std::size_t>(args_.src_height_px) - 1;
    for (std::size_t i = 0; i < leaf_.rows_at_once; ++i) {
      const std::size_t y = std::min(num_made_ + i, last);  // beyond the last: it, once more
      src[i] = readable_row(y, i);
      dst[i] = ring_.data() + y % ring_rows_ * ring_stride_;
    }
    leaf_.horizontal({.axis = &axis_, .src = src.data(), .dst = dst.data()});
    num_made_ += leaf_.rows_at_once;
  }

  /// The source row itself, or a copy if loops would read beyond the end of the source.
  const std::uint8_t* readable_row(std::size_t y, std::size_t slot) {
    const std::size_t begin = y * src_stride_;
    if (begin + read_bytes_ <= args_.src.size()) return args_.src.data() + begin;
    std::uint8_t* copy = padded_.data() + slot * read_bytes_;
    std::memcpy(copy, args_.src.data() + begin, src_stride_);
    return copy;
  }

  const ResizeArgs& args_;
  const ResizeLeaf& leaf_;
  AxisView axis_;
  std::size_t src_stride_;
  std::size_t read_bytes_;
  std::size_t ring_stride_;
  std::size_t ring_rows_;
  std::vector<std::uint8_t> ring_;
  std::vector<std::uint8_t> padded_;  // zeros beyond the copied rows
  std::size_t num_made_ = 0;
};

void resize_x(const ResizeArgs& args, const ResizeLeaf& leaf) {
  const AxisWeights axis = weights_x(args);
  FilteredRows rows(args, axis, leaf, 1);
  const std::size_t row_bytes = static_cast<std::size_t>(args.dst_width_px) * kChannels;
  for (std::size_t y = 0; y < static_cast<std::size_t>(args.dst_height_px); ++y) {
    rows.make_until(y + 1);
    std::memcpy(args.dst.data() + y * row_bytes, rows.row(y), row_bytes);
  }
}

/// Filters along y; source_row(y) is a row of the result's width, prepare(end) is called before
/// rows below `end` are asked for.
template <class Prepare, class SourceRow>
void filter_columns(const ResizeArgs& args, const AxisWeights& axis, const ResizeLeaf& leaf,
                    const Prepare& prepare, const SourceRow& source_row) {
  const AxisView view = view_of(axis);
  const std::size_t row_bytes = static_cast<std::size_t>(args.dst_width_px) * kChannels;
  std::vector<const std::uint8_t*> src(static_cast<std::size_t>(axis.taps));
  for (std::int64_t y = 0; y < axis.out_size; ++y) {
    check_interrupt();
    const auto first = static_cast<std::size_t>(axis.first[static_cast<std::size_t>(y)]);
    const auto count = static_cast<std::size_t>(axis.count[static_cast<std::size_t>(y)]);
    prepare(first + count);
    for (std::size_t j = 0; j < src.size(); ++j)
      src[j] = source_row(first + std::min(j, count - 1));
    leaf.vertical({.axis = &view,
                   .row = y,
                   .src = src.data(),
                   .dst = args.dst.data() + static_cast<std::size_t>(y) * row_bytes,
                   .row_bytes = row_bytes});
  }
}

void resize_y(const ResizeArgs& args, const ResizeLeaf& leaf) {
  const AxisWeights axis = weights_y(args);
  const std::size_t row_bytes = static_cast<std::size_t>(args.src_width_px) * kChannels;
  filter_columns(
      args, axis, leaf, [](std::size_t) {},
      [&](std::size_t y) { return args.src.data() + y * row_bytes; });
}

void resize_xy(const ResizeArgs& args, const ResizeLeaf& leaf) {
  const AxisWeights axis_x = weights_x(args);
  const AxisWeights axis_y = weights_y(args);
  FilteredRows rows(args, axis_x, leaf, static_cast<std::size_t>(axis_y.max_count));
  filter_columns(
      args, axis_y, leaf, [&](std::size_t end) { rows.make_until(end); },
      [&](std::size_t y) { return rows.row(y); });
}

/// Pillow 12.2 and later filter very tall images along y first.
void resize_y_then_x(const ResizeArgs& args, const ResizeLeaf& leaf) {
  std::vector<std::uint8_t> between(static_cast<std::size_t>(args.src_width_px) *
                                    static_cast<std::size_t>(args.dst_height_px) * kChannels);
  ResizeArgs along_y = args;
  along_y.dst = between;
  along_y.dst_width_px = args.src_width_px;
  resize_y(along_y, leaf);
  ResizeArgs along_x = args;
  along_x.src = between;
  along_x.src_height_px = args.dst_height_px;
  resize_x(along_x, leaf);
}

void check_sides(const char* which, std::int64_t width_px, std::int64_t height_px,
                 std::size_t num_bytes) {
  FOVEA_CHECK(width_px >= 1 && height_px >= 1, kInvalidArgument, "resize: ", which,
              " must have sides >= 1, got ", width_px, " x ", height_px);
  constexpr std::int64_t kMaxSide = std::int64_t{1} << 24;  // keeps offsets inside a row in 32 bits
  FOVEA_CHECK(width_px <= kMaxSide && height_px <= kMaxSide, kInvalidArgument, "resize: ", which,
              " must have sides <= ", kMaxSide, ", got ", width_px, " x ", height_px);
  const auto expected = static_cast<std::size_t>(width_px * height_px) * kChannels;
  FOVEA_CHECK(num_bytes == expected, kInvalidArgument, "resize: ", which, " of ", width_px, " x ",
              height_px, " pixels must have ", expected, " bytes, got ", num_bytes);
}

}  // namespace

void resize_rgb(const ResizeArgs& args) {
  check_sides("source", args.src_width_px, args.src_height_px, args.src.size());
  check_sides("result", args.dst_width_px, args.dst_height_px, args.dst.size());

  const ResizeLeaf& leaf = choose_leaf(args.isa);
  const bool same_width =
      args.src_width_px == args.dst_width_px && margins_x(args) == AxisMargins{};
  const bool same_height =
      args.src_height_px == args.dst_height_px && margins_y(args) == AxisMargins{};
  const bool tall_strip = args.engine == ResizeEngine::kPillow &&
                          args.src_height_px > 100 * args.src_width_px &&
                          args.dst_height_px < args.src_height_px;
  if (same_width && same_height)
    std::memcpy(args.dst.data(), args.src.data(), args.src.size());
  else if (same_height)
    resize_x(args, leaf);
  else if (same_width)
    resize_y(args, leaf);
  else if (tall_strip)
    resize_y_then_x(args, leaf);
  else
    resize_xy(args, leaf);
}

}  // namespace fovea::media
