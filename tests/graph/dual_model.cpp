#include "graph/dual_model.h"

#include <algorithm>
#include <array>

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

/// Counts and bytes of the units, each with a patch for every token.
void set_units(ItemPlan& plan, const ItemUnits& global, const ItemUnits& local) {
  for (const auto& [path, units] : {std::pair(kGlobalPath, global), std::pair(kLocalPath, local)}) {
    const auto index = to_size(path);
    plan.spec.units[index] = units;
    plan.spec.path_tokens[index] = units.count * units.rows;
    plan.spec.input_rows += units.count * units.patches;
    plan.unit_bytes[index] = to_size(units.patches * DualModel::kColumns) * sizeof(float);
    plan.pixel_bytes += to_size(units.count) * plan.unit_bytes[index];
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
  set_units(plan, {1, kGlobal, kGlobal}, {tiles, kLocal, kLocal});
  plan.spec.out_rows =
      plan.spec.input_rows + 1 + (tiles > 0 ? height_px * kTileSide : 0);  // newlines
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
  item.plan.spec.num_seqs = 1;
  set_units(item.plan, {global > 0 ? 1 : 0, global, global}, {local > 0 ? 1 : 0, local, local});
  item.plan.spec.out_rows = item.plan.spec.input_rows;
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

void DualModel::fill_inputs(PathId, const GraphCapacity&, std::span<const ItemPart> parts,
                            InputWriter& writer) const {
  std::int64_t tokens = 0;
  for (const ItemPart& part : parts) tokens += part.tokens();
  auto* to = writer.claim("pixels", tokens).as<std::uint8_t>();
  for (const ItemPart& part : parts) to = std::ranges::copy(part.pixels(), to).out;
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

void DualModel::assemble(ExecContext& ctx, PathId path, TensorView rows,
                         std::span<const ItemPart> parts, std::span<const TensorView> out) const {
  const float* next = rows.as<float>();  // of the part
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::int64_t begin = parts[i].first * parts[i].units().rows;
    std::byte* to = out[i].data;
    bool is_mine = false;  // newlines and the separator go with the piece before them
    for_each_piece(parts[i].plan(), [&](int piece, std::int64_t first, std::int64_t count) {
      const std::size_t bytes = to_size(count * kColumns) * sizeof(float);
      const float* from = piece == -1 ? newline_.data() : separator_.data();
      if (piece >= 0) {
        is_mine = piece == path && first >= begin && first < begin + parts[i].tokens();
        from = next + (first - begin) * kColumns;
      }
      if (is_mine) ctx.stream.copy(to, reinterpret_cast<const std::byte*>(from), bytes);
      to += bytes;
    });
    next += parts[i].tokens() * kColumns;
  }
}

}  // namespace fovea::test
