// Which windows an image has. Divisions are done in double and compared as the reference does.
#include "models/common/views/windows.h"

#include <algorithm>

#include "core/check.h"
#include "fovea/tower/ops/context.h"
#include "models/common/frames.h"

namespace fovea::common {

namespace {

constexpr std::int64_t kMaxSquare = 8192;  // 192 MiB
constexpr std::int64_t kMaxWindows = 900;  // 2 GB of pixels

double quotient(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

/// Side of the windows of an image, 0 for none.
std::int64_t window_side(const WindowRule& rule, std::int64_t longer, std::int64_t shorter) {
  const double aspect = quotient(longer, shorter);
  if (longer <= rule.most_small_px) return aspect > 1.5 ? shorter : 0;
  return aspect > 4 ? std::min(shorter, rule.window_px) : rule.window_px;
}

/// Length of an axis of n pixels once it holds whole windows; an axis below one window stays.
std::int64_t crop_size(const WindowRule& rule, std::int64_t n, std::int64_t window) {
  if (n < window) return n;
  const std::int64_t whole = n / window;
  const bool has_rest = rule.compares_parts
                            ? quotient(n, window) - static_cast<double>(whole) > 0.2
                            : static_cast<double>(n % window) > 0.2 * static_cast<double>(window);
  return (has_rest ? whole + 1 : whole) * window;
}

/// Limits the longer side.
void limit_size(const WindowRule& rule, Crop& crop) {
  const std::int64_t longer = std::max(crop.width_px, crop.height_px);
  if (longer <= rule.most_side_px) return;
  const double factor = quotient(rule.most_side_px, longer);
  for (std::int64_t* const side : {&crop.width_px, &crop.height_px}) {
    *side = static_cast<std::int64_t>(static_cast<double>(*side) * factor);
  }
}

}  // namespace

Crop plan_crop(const WindowRule& rule, std::int64_t width_px, std::int64_t height_px,
               bool windows) {
  check_area(width_px, height_px);
  Crop crop{.width_px = width_px, .height_px = height_px};
  const double aspect = quotient(width_px, height_px);
  if (std::min(width_px, height_px) < 32 && (aspect > 4 || aspect < 0.25)) {
    crop.square_px = std::max(width_px, height_px);
    crop.width_px = crop.height_px = crop.square_px;
  }
  FOVEA_CHECK(crop.square_px <= kMaxSquare, kInvalidArgument, "image of ", width_px, "x", height_px,
              " pixels would be padded to a square, at most of side ", kMaxSquare);
  limit_size(rule, crop);
  const auto [shorter, longer] = std::minmax({crop.width_px, crop.height_px});
  FOVEA_CHECK(shorter >= 1, kInvalidArgument, "image of ", width_px, "x", height_px,
              " pixels is too thin: limited to ", rule.most_side_px, " pixels it would vanish");
  crop.window_px = windows ? window_side(rule, longer, shorter) : 0;
  if (crop.window_px == 0) return crop;
  crop.crop_width_px = crop_size(rule, crop.width_px, crop.window_px);
  crop.crop_height_px = crop_size(rule, crop.height_px, crop.window_px);
  crop.windows = {.cols = std::max<std::int64_t>(1, crop.crop_width_px / crop.window_px),
                  .rows = std::max<std::int64_t>(1, crop.crop_height_px / crop.window_px)};
  const std::int64_t count = crop.windows.count();
  FOVEA_CHECK(count <= kMaxWindows, kInvalidArgument, "image of ", width_px, "x", height_px,
              " pixels has ", count, " windows, at most ", kMaxWindows);
  return crop;
}

void assemble_windows(ExecContext& ctx, bool whole, TensorView rows,
                      std::span<const ItemPart> parts, std::span<const TensorView> out) {
  std::int64_t taken = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::int64_t count = parts[i].tokens();
    const std::int64_t place =
        whole ? out[i].shape[0] - count : parts[i].first * parts[i].units().rows;
    const TensorView from = row_range(rows, taken, count);
    ctx.stream.copy(row_range(out[i], place, count).data, from.data, from.bytes());
    taken += count;
  }
}

}  // namespace fovea::common
