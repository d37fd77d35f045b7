// The input buffers of Phi-4-multimodal.
#include "models/phi4_multimodal/inputs.h"

#include <algorithm>
#include <array>
#include <utility>

#include "media/resize/resize_fine.h"
#include "models/common/numbers.h"

namespace fovea::phi4_multimodal {

namespace {

using common::narrow;

constexpr const char* kCuPadding = "cu_padding";
constexpr const char* kPooled = "pooled";
constexpr const char* kMeans = "means";
constexpr const char* kLive = "live_views";

/// Entries of the last: the live counts of Inputs, in their order.
constexpr std::int64_t kNumLive = 5;

constexpr std::int64_t kRowEnd = 0;   ///< the separator behind a row of tokens
constexpr std::int64_t kBetween = 1;  ///< the one before the global view

/// Rows are single patches; the planes of level bytes are to them what frames are.
common::GridGeometry geometry_of(const Processor& processor) {
  return {.patch_size = processor.view().patch_px,
          .spatial_merge_size = 1,
          .temporal_patch_size = processor.view().planes};
}

struct Batch {
  std::vector<std::vector<View>> items;  ///< with their rows
  std::vector<common::GridRun> runs;     ///< in the order of rows: padding comes behind all patches
  std::int64_t patches = 0;              ///< of all views
};

/// Gives all views their rows.
Batch number_rows(const Processor& processor, std::span<const ItemPart> parts) {
  const std::int64_t patch = processor.view().patch_px;
  const common::GridGeometry geometry = geometry_of(processor);
  const ItemPlan white = common::plan_view(geometry, {patch, patch});
  const std::size_t white_bytes = media::kLevelBytes * white.pixel_bytes;
  std::vector<common::GridRun> padding;
  Batch batch;
  for (const ItemPart& part : parts) {
    std::span<const std::uint8_t> pixels = part.pixels();
    std::vector<View>& views = batch.items.emplace_back(processor.views_of(part.plan()));
    const std::int64_t padded = std::ranges::count_if(views, &View::is_padded);
    if (padded > 0) {
      padding.insert(padding.end(), static_cast<std::size_t>(padded),
                     {white, pixels.first(white_bytes), 1});
      pixels = pixels.subspan(white_bytes);
    }
    for (View& view : views) {
      const ItemPlan plan = common::plan_view(geometry, {view.rows * patch, view.cols * patch});
      const std::size_t bytes = media::kLevelBytes * plan.pixel_bytes;
      view.first_row = std::exchange(batch.patches, batch.patches + view.patches());
      batch.runs.push_back({plan, pixels.first(bytes), view.patches()});
      pixels = pixels.subspan(bytes);
    }
  }
  std::int64_t row = batch.patches;
  for (std::vector<View>& item : batch.items) {
    for (View& view : item) view.padding_row = view.is_padded() ? row++ : row;
  }
  batch.runs.insert(batch.runs.end(), padding.begin(), padding.end());
  return batch;
}

/// The rows of the output, which are means of the rows of patches, and separators.
struct OutRows {
  std::vector<std::int64_t> pooled;
  std::vector<std::int64_t> means;

  void add_separator(std::int64_t which) { add_mean(which, 1); }
  void add_token(const View& view, std::int64_t y, std::int64_t x) {
    add_mean(Inputs::kSeparators + std::ssize(pooled), 4);
    for (const std::int64_t row : {2 * y, 2 * y + 1}) {
      for (const std::int64_t col : {2 * x, 2 * x + 1}) pooled.push_back(view.row_of(row, col));
    }
  }
  void add_mean(std::int64_t first, std::int64_t rows) {
    means.insert(means.end(), {first, rows, 1, 0});
  }
};

/// Tokens of views side by side, row by row across them, with a separator behind each row.
/// @param patches of all of them together. @param side tokens of a whole view.
void add_tokens(std::span<const View> views, const common::Tiling& patches, std::int64_t side,
                OutRows& to) {
  const std::int64_t cols = (patches.cols + 2 * side - 1) / (2 * side);  // of views
  for (std::int64_t y = 0; 2 * y < patches.rows; ++y) {
    for (std::int64_t x = 0; 2 * x < patches.cols; ++x) {
      to.add_token(views[static_cast<std::size_t>(y / side * cols + x / side)], y % side, x % side);
    }
    to.add_separator(kRowEnd);
  }
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

std::vector<BufferDecl> Inputs::declare(const Processor& processor, const GraphCapacity& capacity) {
  const std::int64_t tokens = capacity.tokens;
  // A view has a token at least, and many of them where it is not the last of its row or column,
  // the only ones with padding.
  std::vector<BufferDecl> buffers = common::GridInputs::declare(
      geometry_of(processor), {.tokens = 4 * tokens, .items = capacity.items, .seqs = tokens});
  buffers.push_back({kCuPadding, DType::kI32, {tokens + 1}, PadRule::kRepeatLast});
  buffers.push_back({kPooled, DType::kI32, {4 * tokens}});
  buffers.push_back({kMeans, DType::kI32, {tokens, 4}});
  buffers.push_back({kLive, DType::kI32, {kNumLive}});
  return buffers;
}

void Inputs::fill(const Processor& processor, const GraphCapacity&, std::span<const ItemPart> parts,
                  InputWriter& writer) {
  const Batch batch = number_rows(processor, parts);
  const common::PatchTables rows =
      common::GridInputs::fill(geometry_of(processor), batch.runs, writer);
  const std::int64_t grid = processor.view().grid();
  for (std::size_t i = 0; i < rows.positions.size(); ++i) {
    std::int32_t& number = rows.positions[i];  // y, x, height, width
    number = narrow(i % 4 < 2 ? position_of(number, rows.positions[i + 2], grid) : grid);
  }
  std::vector<std::int64_t> padding{batch.patches};  // offsets
  OutRows out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::span<const View> views = batch.items[i];
    add_tokens(views.subspan(1), processor.patches_of(parts[i].plan()), grid / 2, out);
    out.add_separator(kBetween);
    add_tokens(views.first(1), {.cols = grid, .rows = grid}, grid / 2, out);
    for (const View& view : views) {
      padding.push_back(padding.back() + (view.is_padded() ? 1 : 0));
    }
  }
  common::write_numbers(writer, kCuPadding, padding);
  common::write_numbers(writer, kPooled, out.pooled);
  common::write_numbers(writer, kMeans, out.means, 4);
  const std::int64_t views = std::ssize(padding) - 1;
  const bool has_padding = padding.back() > batch.patches;
  common::write_numbers(writer, kLive,
                        std::array{views, has_padding ? padding.back() : 0, has_padding ? views : 0,
                                   std::ssize(out.pooled), std::ssize(out.means) / 4});
}

Inputs Inputs::of(const Processor&, const GraphCapacity&, const NamedTensors& in) {
  const auto* live = in[kLive].as<std::int32_t>();
  return {.grid = common::GridInputs::of(in),
          .cu_padding = in[kCuPadding],
          .pooled = in[kPooled],
          .means = in[kMeans],
          .views = {live},
          .padded_rows = {live + 1},
          .padded_views = {live + 2},
          .pooled_rows = {live + 3},
          .out = {live + 4}};
}

}  // namespace fovea::phi4_multimodal
