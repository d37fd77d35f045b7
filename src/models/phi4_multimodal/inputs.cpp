// The input buffers of Phi-4-multimodal.
#include "models/phi4_multimodal/inputs.h"

#include <algorithm>

#include "media/resize/resize_fine.h"
#include "models/common/frames.h"

namespace fovea::phi4_multimodal {

namespace {

constexpr const char* kPixels = "pixels";
constexpr const char* kSources = "sources";
constexpr const char* kPositions = "positions";
constexpr const char* kCuSeqlens = "cu_seqlens";
constexpr const char* kCuPadding = "cu_padding";
constexpr const char* kPooled = "pooled";
constexpr const char* kOutRows = "out_rows";
constexpr const char* kLive = "live";

/// Entries of the last.
enum Live : std::int64_t {
  kLiveRows,
  kLiveViews,
  kLivePaddedRows,
  kLivePaddedViews,
  kLiveTokens,
  kLiveOut,
  kNumLive
};

constexpr std::int64_t kPatchesOfToken = 4;
constexpr std::int32_t kRowEnd = 0;   ///< the separator behind a row of tokens
constexpr std::int32_t kBetween = 1;  ///< the one before the global view
constexpr std::int32_t kSeparators = 2;

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

/// A view, or the part of it that tokens are made of.
struct View {
  std::int64_t rows = 0;  ///< of patches of the image
  std::int64_t cols = 0;
  std::int64_t image_width_px = 0;  ///< of the pixels that it lies in
  std::int64_t image_height_px = 0;
  std::int64_t begin = 0;  ///< byte of its first pixel
  std::int64_t first_row = 0;
  std::int64_t first_padding = 0;

  /// With the padding that shares tokens with the image.
  [[nodiscard]] std::int64_t all_rows() const { return rows + rows % 2; }
  [[nodiscard]] std::int64_t all_cols() const { return cols + cols % 2; }
  [[nodiscard]] std::int64_t patches() const { return rows * cols; }
  [[nodiscard]] std::int64_t padding() const { return all_rows() * all_cols() - patches(); }
  /// The row of patch (y, x): padding is the column on the right, then the row below.
  [[nodiscard]] std::int64_t row_of(std::int64_t y, std::int64_t x) const {
    if (y < rows && x < cols) return first_row + y * cols + x;
    if (y < rows) return first_padding + y;
    return first_padding + (all_cols() - cols) * rows + x;
  }
};

/// The views of an item, the global one first.
struct ItemViews {
  std::vector<View> views;
  std::int64_t canvas_cols = 0;  ///< of views that have a patch of the image
  std::int64_t token_rows = 0;
  std::int64_t token_cols = 0;
};

ItemViews views_of(const Processing& p, const ItemPlan& plan, std::int64_t begin) {
  constexpr auto kPlanes = static_cast<std::int64_t>(media::kLevelBytes);
  const std::int64_t grid = p.view.grid();
  const std::int64_t side = p.view.side_px;
  const Placement place = place_image(p, plan.source_width_px, plan.source_height_px);
  ItemViews item{.token_rows = place.token_rows(), .token_cols = place.token_cols()};
  item.views.push_back({grid, grid, side, side, begin});
  const std::int64_t canvas = begin + side * side * 3 * kPlanes;
  const std::int64_t width = 2 * place.token_cols() * p.view.patch_px;
  const std::int64_t height = 2 * place.token_rows() * p.view.patch_px;
  item.canvas_cols = (place.cols + grid - 1) / grid;
  for (std::int64_t y = 0; y < place.rows; y += grid) {
    for (std::int64_t x = 0; x < place.cols; x += grid) {
      item.views.push_back({std::min(grid, place.rows - y), std::min(grid, place.cols - x), width,
                            height, canvas + (y * width + x) * p.view.patch_px * 3});
    }
  }
  return item;
}

/// Where the rows of a batch are written to.
struct Tables {
  std::int32_t* sources;
  std::int32_t* positions;
  std::int32_t* pooled;
  std::int32_t* out_rows;
  std::int32_t next_token = kSeparators;
};

void write_row(const Processing& p, const View& view, std::int64_t y, std::int64_t x,
               const Tables& to) {
  const std::int64_t row = 4 * view.row_of(y, x);
  const std::int64_t stride = view.image_width_px * 3;
  const std::int64_t offset = view.begin + (y * stride + x * 3) * p.view.patch_px;
  const std::int64_t grid = p.view.grid();
  const bool is_padding = y >= view.rows || x >= view.cols;
  const std::int64_t place_y = is_padding ? 0 : position_of(y, view.rows, grid);
  const std::int64_t place_x = is_padding ? 0 : position_of(x, view.cols, grid);
  const std::int64_t source[] = {offset, stride, stride * view.image_height_px, 0};
  const std::int64_t position[] = {place_y, place_x, grid, grid};
  std::ranges::transform(source, to.sources + row, narrow);
  std::ranges::transform(position, to.positions + row, narrow);
}

void write_token(const View& view, std::int64_t y, std::int64_t x, Tables& to) {
  for (const std::int64_t dy : {0, 1}) {
    for (const std::int64_t dx : {0, 1}) *to.pooled++ = narrow(view.row_of(2 * y + dy, 2 * x + dx));
  }
  *to.out_rows++ = to.next_token++;
}

/// Tokens of the canvas, row by row across its views, then those of the global view.
void write_tokens(const Processing& p, const ItemViews& item, Tables& to) {
  const std::int64_t side = p.view.grid() / 2;
  for (std::int64_t y = 0; y < item.token_rows; ++y) {
    for (std::int64_t x = 0; x < item.token_cols; ++x) {
      const std::int64_t view = 1 + y / side * item.canvas_cols + x / side;
      write_token(item.views[static_cast<std::size_t>(view)], y % side, x % side, to);
    }
    *to.out_rows++ = kRowEnd;
  }
  *to.out_rows++ = kBetween;
  for (std::int64_t y = 0; y < side; ++y) {
    for (std::int64_t x = 0; x < side; ++x) write_token(item.views.front(), y, x, to);
    *to.out_rows++ = kRowEnd;
  }
}

/// Gives all views of a batch their rows: padding comes behind all patches. @return the rows.
std::int64_t number_rows(std::vector<ItemViews>& items) {
  std::int64_t row = 0;
  for (ItemViews& item : items) {
    for (View& view : item.views) {
      view.first_row = row;
      row += view.patches();
    }
  }
  for (ItemViews& item : items) {
    for (View& view : item.views) {
      view.first_padding = row;
      row += view.padding();
    }
  }
  return row;
}

}  // namespace

std::int64_t position_of(std::int64_t index, std::int64_t count, std::int64_t side) {
  const float step = 1.0f / static_cast<float>(count);
  const float fraction = std::min(static_cast<float>(index) * step, static_cast<float>(1.0 - 1e-6));
  std::int64_t place = 0;
  for (std::int64_t k = 1; k < side; ++k) {
    const double boundary = static_cast<double>(k) / static_cast<double>(side);
    if (static_cast<float>(boundary) <= fraction) place = k;
  }
  return place;
}

std::vector<BufferDecl> Inputs::declare(const common::SquareView& view, std::int64_t tokens) {
  const std::int64_t rows = kPatchesOfToken * tokens;
  const std::int64_t patch_bytes =
      view.patch_px * view.patch_px * 3 * static_cast<std::int64_t>(media::kLevelBytes);
  return {{kPixels, DType::kU8, {rows * patch_bytes}},
          {kSources, DType::kI32, {rows, 4}},
          {kPositions, DType::kI32, {rows, 4}},
          {kCuSeqlens, DType::kI32, {tokens + 1}, PadRule::kRepeatLast},
          {kCuPadding, DType::kI32, {tokens + 1}, PadRule::kRepeatLast},
          {kPooled, DType::kI32, {rows}},
          {kOutRows, DType::kI32, {tokens}},
          {kLive, DType::kI32, {kNumLive}}};
}

void Inputs::fill(const Processing& processing, std::span<const ItemPart> parts,
                  InputWriter& writer) {
  std::vector<ItemViews> items;
  std::int64_t bytes = 0;
  std::int64_t views = 0;
  std::int64_t out_rows = 0;
  for (const ItemPart& part : parts) {
    items.push_back(views_of(processing, part.plan(), bytes));
    bytes += std::ssize(part.pixels());
    views += std::ssize(items.back().views);
    out_rows += part.tokens();
  }
  common::check_pixel_offsets(bytes, parts.size());
  const std::int64_t rows = number_rows(items);
  std::byte* pixels = writer.claim(kPixels, bytes).data;
  for (const ItemPart& part : parts) {
    writer.copy(pixels, part.pixels());
    pixels += part.pixels().size();
  }
  Tables to{.sources = writer.claim(kSources, rows).as<std::int32_t>(),
            .positions = writer.claim(kPositions, rows).as<std::int32_t>(),
            .pooled = writer.claim(kPooled, rows).as<std::int32_t>(),
            .out_rows = writer.claim(kOutRows, out_rows).as<std::int32_t>()};
  auto* patches = writer.claim(kCuSeqlens, views + 1).as<std::int32_t>();
  auto* padding = writer.claim(kCuPadding, views + 1).as<std::int32_t>();
  *patches = 0;
  *padding = narrow(items.empty() ? 0 : items.front().views.front().first_padding);
  for (const ItemViews& item : items) {
    for (const View& view : item.views) {
      *++patches = narrow(view.first_row + view.patches());
      *++padding = narrow(view.first_padding + view.padding());
      for (std::int64_t y = 0; y < view.all_rows(); ++y) {
        for (std::int64_t x = 0; x < view.all_cols(); ++x) write_row(processing, view, y, x, to);
      }
    }
    write_tokens(processing, item, to);
  }
  const bool has_padding = *patches < rows;
  auto* live = writer.claim(kLive, kNumLive).as<std::int32_t>();
  live[kLiveRows] = narrow(rows);
  live[kLiveViews] = narrow(views);
  live[kLivePaddedRows] = narrow(has_padding ? rows : 0);
  live[kLivePaddedViews] = narrow(has_padding ? views : 0);
  live[kLiveTokens] = to.next_token - kSeparators;
  live[kLiveOut] = narrow(out_rows);
}

Inputs Inputs::of(const NamedTensors& in) {
  const auto* live = in[kLive].as<std::int32_t>();
  return {.pixels = in[kPixels],
          .sources = in[kSources],
          .positions = in[kPositions],
          .cu_seqlens = in[kCuSeqlens],
          .cu_padding = in[kCuPadding],
          .pooled = in[kPooled],
          .out_rows = in[kOutRows],
          .rows = {live + kLiveRows},
          .views = {live + kLiveViews},
          .padded_rows = {live + kLivePaddedRows},
          .padded_views = {live + kLivePaddedViews},
          .tokens = {live + kLiveTokens},
          .out = {live + kLiveOut}};
}

}  // namespace fovea::phi4_multimodal
