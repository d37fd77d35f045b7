// The input buffers of Phi-4-multimodal.
#include "models/phi4_multimodal/inputs.h"

#include <algorithm>
#include <array>
#include <utility>

#include "media/resize/resize_fine.h"
#include "models/common/numbers.h"

namespace fovea::phi4_multimodal {

namespace {

constexpr const char* kCuPadding = "cu_padding";
constexpr const char* kPooled = "pooled";
constexpr const char* kMeans = "means";
constexpr const char* kLive = "live_rows";  // padded_rows, pooled_rows, out

constexpr std::int64_t kRowEnd = 0;   ///< the separator behind a row of tokens
constexpr std::int64_t kBetween = 1;  ///< the one before the global view

struct Batch {
  std::vector<std::vector<View>> items;  ///< with their rows
  std::vector<common::GridRun> runs;     ///< in the order of rows: padding comes behind all patches
  std::vector<std::int64_t> padding;     ///< as Inputs::cu_padding
};

/// Gives all views their rows.
Batch number_rows(const Processor& processor, std::span<const ItemPart> parts) {
  const std::int64_t patch = processor.view().patch_px;
  const common::GridGeometry geometry = grid_of(processor.view());
  const ItemPlan white = common::plan_view(geometry, {patch, patch});
  std::vector<common::GridRun> padding;
  std::int64_t row = 0;
  Batch batch;
  for (const ItemPart& part : parts) {
    std::span<const std::uint8_t> pixels = part.pixels();
    for (View& view : batch.items.emplace_back(processor.views_of(part.plan()))) {
      const ItemPlan plan = common::plan_view(geometry, {view.rows * patch, view.cols * patch});
      const std::size_t bytes = media::kLevelBytes * plan.pixel_bytes;
      view.first_row = std::exchange(row, row + view.patches());
      batch.runs.push_back({plan, pixels.first(bytes), view.patches()});
      if (view.is_padded()) padding.push_back({white, processor.white_patch(), 1});
      pixels = pixels.subspan(bytes);
    }
  }
  for (std::vector<View>& item : batch.items) {
    for (View& view : item) {
      view.padding_row = row;
      batch.padding.push_back(row);
      row += view.is_padded() ? 1 : 0;
    }
  }
  batch.runs.insert(batch.runs.end(), padding.begin(), padding.end());
  batch.padding.resize(batch.runs.size() + 1, row);
  return batch;
}

/// The rows of the output, which are means of the rows of patches, and separators.
struct OutRows {
  std::vector<std::int64_t> pooled;
  std::vector<std::int64_t> means;

  void add_separator(std::int64_t which) { means.insert(means.end(), {which, 1, 1, 0}); }
  void add_token(const View& view, std::int64_t y, std::int64_t x) {
    means.insert(means.end(), {Inputs::kSeparators + std::ssize(pooled), 4, 1, 0});
    for (const std::int64_t row : {2 * y, 2 * y + 1}) {
      for (const std::int64_t col : {2 * x, 2 * x + 1}) pooled.push_back(view.row_of(row, col));
    }
  }
};

/// Tokens of views side by side, row by row across them, with a separator behind each row.
/// @param side tokens of a whole view.
void add_tokens(std::span<const View> views, std::int64_t side, OutRows& to) {
  const View& last = views.back();
  const std::int64_t cols = last.x / (2 * side) + 1;  // of views
  for (std::int64_t y = 0; 2 * y < last.y + last.rows; ++y) {
    for (std::int64_t x = 0; 2 * x < last.x + last.cols; ++x) {
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
  const auto boundary_behind = [side](std::int64_t k) {
    return static_cast<float>(static_cast<double>(k + 1) / static_cast<double>(side));
  };
  while (place + 1 < side && boundary_behind(place) <= fraction) ++place;
  return place;
}

std::vector<BufferDecl> Inputs::declare(const Processor& processor, const GraphCapacity& capacity) {
  const std::int64_t tokens = capacity.tokens;
  // Padding is a sequence, too. Views that are not the last of their row or column, which have
  // none, make up for it with their tokens, unless they have one each.
  const std::int64_t seqs = (processor.view().tokens_side() > 1 ? 1 : 2) * tokens;
  std::vector<BufferDecl> buffers = common::GridInputs::declare(
      grid_of(processor.view()), {.tokens = 4 * tokens, .items = capacity.items, .seqs = seqs});
  buffers.push_back({kCuPadding, DType::kI32, {seqs + 1}, PadRule::kRepeatLast});
  buffers.push_back({kPooled, DType::kI32, {4 * tokens}});
  buffers.push_back({kMeans, DType::kI32, {tokens, 4}});
  buffers.push_back({kLive, DType::kI32, {3}});
  return buffers;
}

void Inputs::fill(const Processor& processor, const GraphCapacity&, std::span<const ItemPart> parts,
                  InputWriter& writer) {
  const Batch batch = number_rows(processor, parts);
  const common::PatchTables rows =
      common::GridInputs::fill(grid_of(processor.view()), batch.runs, writer);
  const std::int64_t grid = processor.view().grid();
  for (std::size_t i = 0; i < rows.positions.size(); ++i) {
    std::int32_t& number = rows.positions[i];  // y, x, height, width
    number = common::narrow(i % 4 < 2 ? position_of(number, rows.positions[i + 2], grid) : grid);
  }
  OutRows out;
  for (const std::span<const View> views : batch.items) {
    add_tokens(views.subspan(1), grid / 2, out);
    out.add_separator(kBetween);
    add_tokens(views.first(1), grid / 2, out);
  }
  const std::int64_t rows_in_all = batch.padding.back();
  const std::int64_t padded_rows = batch.padding.front() < rows_in_all ? rows_in_all : 0;
  common::write_numbers(writer, kCuPadding, batch.padding);
  common::write_numbers(writer, kPooled, out.pooled);
  common::write_numbers(writer, kMeans, out.means, 4);
  common::write_numbers(writer, kLive,
                        std::array{padded_rows, std::ssize(out.pooled), std::ssize(out.means) / 4});
}

Inputs Inputs::of(const Processor& processor, const GraphCapacity&, const NamedTensors& in) {
  const auto* live = in[kLive].as<std::int32_t>();
  return {.grid = common::GridInputs::of(in),
          .cu_padding = in[kCuPadding],
          .pooled = in[kPooled],
          .means = in[kMeans],
          .view_patches = processor.view().patches(),
          .padded_rows = {live},
          .pooled_rows = {live + 1},
          .out = {live + 2}};
}

}  // namespace fovea::phi4_multimodal
