#include "graph/dual_model.h"

#include <algorithm>
#include <array>

#include "core/check.h"
#include "fovea/tower/ops/context.h"
#include "graph/mock_parts.h"

namespace fovea::test {

namespace {

enum Path : PathId { kGlobalPath, kLocalPath };

/// What a tower computes from one input row.
void tower(PathId path, const float* row, float* out) {
  for (std::int64_t c = 0; c < DualModel::kColumns; ++c) {
    out[c] = row[c] * (path == kGlobalPath ? 3.0f : -2.0f) + 0.5f * row[(c + 1) % 8];
  }
}

bool is_crop(const ItemPlan& plan) { return plan.grid[0] == 1; }

/// Calls piece(path, first token of the item's path, count) in the order of the final rows; path
/// -1 is the newline, -2 the separator.
template <class Piece>
void for_each_piece(const ItemPlan& plan, Piece&& piece) {
  constexpr std::int64_t kSide = DualModel::kTileSide;
  const std::int64_t rows = plan.grid[1];
  const std::int64_t columns = plan.grid[2];
  if (!is_crop(plan)) {
    piece(kLocalPath, 0, plan.spec.path_tokens[kLocalPath]);
    piece(kGlobalPath, 0, plan.spec.path_tokens[kGlobalPath]);
    return;
  }
  if (plan.spec.path_tokens[kLocalPath] > 0) {
    for (std::int64_t y = 0; y < rows * kSide; ++y) {
      for (std::int64_t x = 0; x < columns; ++x) {
        const std::int64_t tile = y / kSide * columns + x;
        piece(kLocalPath, tile * DualModel::kLocal + y % kSide * kSide, kSide);
      }
      piece(-1, 0, 1);
    }
  }
  piece(kGlobalPath, 0, DualModel::kGlobal);
  piece(-2, 0, 1);
}

}  // namespace

DualModel::DualModel(std::int64_t max_token_budget)
    : newline_(random_floats(kColumns, 11)), separator_(random_floats(kColumns, 12)) {
  spec_.modalities = {Modality::kImage};
  spec_.min_token_budget = kGlobal;
  spec_.max_token_budget = max_token_budget;
  spec_.main_width = kColumns;
  spec_.out_width = kColumns;
  spec_.paths = {
      {.name = "global", .min_token_budget = kGlobal, .unit = kGlobal, .max_item_tokens = kGlobal},
      {.name = "local", .min_token_budget = kLocal, .allow_zero_tokens = true, .unit = kLocal}};
}

ItemPlan DualModel::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  const std::int64_t tiles = width_px * height_px > 1 ? width_px * height_px : 0;
  ItemPlan plan;
  plan.grid = {1, height_px, width_px};
  plan.spec.num_seqs = 1;
  plan.spec.path_tokens = {kGlobal, tiles * kLocal};
  plan.spec.out_rows =
      kGlobal + 1 + tiles * kLocal + (tiles > 0 ? height_px * kTileSide : 0);  // newlines
  plan.spec.input_rows = kGlobal + tiles * kLocal;
  plan.pixel_bytes = to_size(plan.spec.input_rows * kColumns) * sizeof(float);
  return plan;
}

PreparedItem DualModel::make_crop(std::int64_t w, std::int64_t h, std::uint64_t seed) const {
  PreparedItem item{.plan = plan_image(w, h), .pixels = {}};
  item.pixels = random_pixels(item.plan.pixel_bytes / sizeof(float), false, seed);
  return item;
}

PreparedItem DualModel::make_plain(std::int64_t global, std::int64_t local,
                                   std::uint64_t seed) const {
  PreparedItem item;
  item.plan.grid = {0, 0, 0};
  item.plan.spec = {.input_rows = global + local,
                    .out_rows = global + local,
                    .num_seqs = 1,
                    .path_tokens = {global, local}};
  item.plan.pixel_bytes = to_size((global + local) * kColumns) * sizeof(float);
  item.pixels = random_pixels(item.plan.pixel_bytes / sizeof(float), false, seed);
  return item;
}

/// Global input rows come first in the pixels of an item, local ones after them.
std::vector<float> DualModel::reference(const PreparedItem& item) const {
  const auto* const input = reinterpret_cast<const float*>(item.pixels.data());
  const std::int64_t local_start = item.plan.spec.path_tokens[kGlobalPath];
  std::vector<float> rows;
  for_each_piece(item.plan, [&](int path, std::int64_t first, std::int64_t count) {
    for (std::int64_t token = first; token < first + count; ++token) {
      std::array<float, kColumns> row{};
      if (path < 0) {
        const std::vector<float>& fixed = path == -1 ? newline_ : separator_;
        std::copy(fixed.begin(), fixed.end(), row.begin());
      } else {
        tower(path, input + (token + (path == kLocalPath ? local_start : 0)) * kColumns,
              row.data());
      }
      rows.insert(rows.end(), row.begin(), row.end());
    }
  });
  return rows;
}

std::vector<BufferDecl> DualModel::inputs(PathId, const GraphCapacity& capacity) const {
  return {{"pixels", DType::kF32, {capacity.tokens, kColumns}}, {"live", DType::kI32, {1}}};
}

void DualModel::fill_inputs(PathId path, const GraphCapacity&,
                            std::span<const PreparedItem* const> items, InputWriter& writer) const {
  std::int64_t tokens = 0;
  for (const PreparedItem* item : items) tokens += item->plan.spec.path_tokens[to_size(path)];
  float* to = writer.claim("pixels", tokens).as<float>();
  for (const PreparedItem* item : items) {
    const auto& counts = item->plan.spec.path_tokens;
    const auto* const from = reinterpret_cast<const float*>(item->pixels.data()) +
                             (path == kLocalPath ? counts[kGlobalPath] * kColumns : 0);
    to = std::copy_n(from, counts[to_size(path)] * kColumns, to);
  }
  *writer.claim("live", 1).as<std::int32_t>() = static_cast<std::int32_t>(tokens);
}

void DualModel::forward(ExecContext& ctx, PathId path, const GraphCapacity& capacity,
                        const NamedTensors& in, TensorView out) const {
  const Arena::Scope scope(ctx.arena);
  const TensorView copy = ctx.arena.tensor(DType::kF32, {capacity.tokens, kColumns});
  const TensorView pixels = in["pixels"];
  const auto* const live = in["live"].as<std::int32_t>();
  submit_closure(ctx.stream,
                 [=] { std::copy_n(pixels.as<float>(), *live * kColumns, copy.as<float>()); });
  submit_closure(ctx.stream, [=] {
    for (std::int64_t token = 0; token < *live; ++token) {
      tower(path, copy.as<float>() + token * kColumns, out.as<float>() + token * kColumns);
    }
  });
}

void DualModel::assemble(ExecContext& ctx, std::span<const PathOutput> outputs,
                         std::span<const PreparedItem* const> items,
                         std::span<const TensorView> out) const {
  std::array<std::int64_t, 2> start{};  // first token of the item in each path's rows
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::byte* to = out[i].data;
    for_each_piece(items[i]->plan, [&](int path, std::int64_t first, std::int64_t count) {
      const std::size_t bytes = to_size(count * kColumns) * sizeof(float);
      if (bytes == 0) return;
      const float* from = path == -1 ? newline_.data() : separator_.data();
      if (path >= 0) {
        FOVEA_CHECK(outputs[to_size(path)].rows, kInternal, "path ", path, " is missing");
        from = outputs[to_size(path)].rows.as<float>() + (start[to_size(path)] + first) * kColumns;
      }
      ctx.stream.copy(to, reinterpret_cast<const std::byte*>(from), bytes);
      to += bytes;
    });
    for (std::size_t path = 0; path < 2; ++path) {
      start[path] += items[i]->plan.spec.path_tokens[path];
    }
  }
}

}  // namespace fovea::test
