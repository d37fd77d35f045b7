// Two small models for tests of the graph room.
#include "graph/mock_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "device/cpu/cpu_device.h"
#include "graph/deferred_device.h"
#include "ops/context.h"

namespace fovea::test {

namespace {

constexpr std::int64_t kMergeArea = 4;

std::vector<float> random_floats(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> unit(-1.0f, 1.0f);
  std::vector<float> values(count);
  for (float& value : values) value = unit(random);
  return values;
}

std::vector<std::uint8_t> random_pixels(std::size_t elements, bool bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  if (bytes) {
    std::vector<std::uint8_t> pixels(elements);
    for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(random() % 256);
    return pixels;
  }
  const std::vector<float> floats = random_floats(elements, seed);
  const auto* const raw = reinterpret_cast<const std::uint8_t*>(floats.data());
  return {raw, raw + elements * sizeof(float)};
}

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

}  // namespace

void submit_closure(Stream& stream, std::function<void()> work) {
  if (auto* const cpu = dynamic_cast<CpuStream*>(&stream)) {
    cpu->submit([work = std::move(work)](ThreadPool&) { work(); });
  } else if (auto* const deferred = dynamic_cast<DeferredStream*>(&stream)) {
    deferred->submit(std::move(work));
  }
}

// --- MockModel ---

MockModel::MockModel(MockOptions options)
    : options_(std::move(options)),
      weight_(random_floats(to_size(options_.hidden * options_.width), 1)) {
  spec_.modalities = options_.modalities;
  spec_.main_width = options_.hidden;
  spec_.out_width = options_.hidden;
  spec_.min_token_budget = 4;
  spec_.max_token_budget = 128;
  spec_.max_frames_per_video = options_.max_frames_per_video;
}

std::int64_t MockModel::row_bytes() const {
  return options_.width * static_cast<std::int64_t>(options_.byte_pixels ? 1 : sizeof(float));
}

ItemPlan MockModel::plan_video(std::int64_t num_frames, std::int64_t width_px,
                               std::int64_t height_px) const {
  ItemPlan plan;
  plan.modality = num_frames > 1 ? Modality::kVideo : Modality::kImage;
  plan.num_frames = num_frames;
  plan.grid = {num_frames, height_px / 2 * 2, width_px / 2 * 2};
  plan.spec.input_rows = plan.grid[0] * plan.grid[1] * plan.grid[2];
  plan.spec.out_rows = plan.spec.input_rows / kMergeArea;
  plan.spec.num_seqs = num_frames;
  plan.spec.path_tokens[0] = plan.spec.out_rows;
  plan.pixel_bytes = to_size(plan.spec.input_rows * row_bytes());
  return plan;
}

ItemPlan MockModel::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  return plan_video(1, width_px, height_px);
}

PreparedItem MockModel::make_item(Grid grid, std::uint64_t seed) const {
  PreparedItem item{.plan = plan_video(grid[0], grid[2], grid[1]), .pixels = {}};
  const auto elements = to_size(item.plan.spec.input_rows * options_.width);
  item.pixels = random_pixels(elements, options_.byte_pixels, seed);
  return item;
}

float MockModel::value(const std::byte* row, std::int64_t column) const {
  if (options_.byte_pixels) {  // the usual normalisation: v / 255, mean and deviation one half
    return (static_cast<float>(std::to_integer<int>(row[column])) / 255.0f - 0.5f) / 0.5f;
  }
  return reinterpret_cast<const float*>(row)[column];
}

void MockModel::project(const std::byte* row, float* out) const {
  for (std::int64_t n = 0; n < options_.hidden; ++n) {
    float sum = 0.25f;  // a bias, so that empty input does not look like empty output
    for (std::int64_t k = 0; k < options_.width; ++k) {
      sum += value(row, k) * weight_[to_size(n * options_.width + k)];
    }
    out[n] = sum;
  }
}

std::vector<float> MockModel::reference(const PreparedItem& item) const {
  const auto* const pixels = reinterpret_cast<const std::byte*>(item.pixels.data());
  const auto length = static_cast<float>(item.plan.grid[1] * item.plan.grid[2]);
  std::vector<float> rows;
  std::vector<float> projected(to_size(options_.hidden * kMergeArea));
  for (std::int64_t token = 0; token < item.plan.spec.out_rows; ++token) {
    for (std::int64_t i = 0; i < kMergeArea; ++i) {
      project(pixels + (token * kMergeArea + i) * row_bytes(),
              projected.data() + i * options_.hidden);
    }
    for (std::int64_t n = 0; n < options_.hidden; ++n) {
      float sum = 0;
      for (std::int64_t i = 0; i < kMergeArea; ++i) {
        sum += projected[to_size(i * options_.hidden + n)];
      }
      rows.push_back(sum / 4.0f + length / 1024.0f);
    }
  }
  return rows;
}

std::vector<BufferDecl> MockModel::inputs(PathId, const GraphCapacity& capacity) const {
  const bool narrow = options_.narrow_only_at == 0 || options_.narrow_only_at == capacity.items;
  const std::int64_t rows = capacity.tokens * kMergeArea - (narrow ? options_.narrow_rows_by : 0);
  const DType dtype = options_.byte_pixels ? DType::kU8 : DType::kF32;
  std::vector<BufferDecl> decls{
      {"pixel_values", dtype, {std::max<std::int64_t>(rows, 0), options_.width}},
      {"live", DType::kI32, {2}},
      {"cu_seqlens", DType::kI32, {capacity.seqs + 1}, PadRule::kRepeatLast}};
  if (options_.declare_twice) decls.push_back(decls[1]);
  return decls;
}

void MockModel::fill_inputs(PathId, const GraphCapacity&,
                            std::span<const PreparedItem* const> items, InputWriter& writer) const {
  if (options_.before_fill) options_.before_fill();
  std::int64_t rows = 0;
  std::vector<std::int32_t>::size_type seqs = 0;
  for (const PreparedItem* item : items) {
    rows += item->plan.spec.input_rows;
    seqs += to_size(item->plan.spec.num_seqs);
  }
  if (options_.forgotten_buffer != "pixel_values") {
    auto* to = writer.claim("pixel_values", rows).as<std::uint8_t>();
    for (const PreparedItem* item : items) {
      to = std::copy(item->pixels.begin(), item->pixels.end(), to);
    }
  }
  if (options_.forgotten_buffer != "live") {
    auto* const live = writer.claim("live", 2).as<std::int32_t>();
    live[0] = static_cast<std::int32_t>(rows);
    live[1] = static_cast<std::int32_t>(seqs);
  }
  if (options_.forgotten_buffer != "cu_seqlens") {
    auto* offset =
        writer.claim("cu_seqlens", static_cast<std::int64_t>(seqs) + 1).as<std::int32_t>();
    *offset = 0;
    for (const PreparedItem* item : items) {
      const Grid& grid = item->plan.grid;
      for (std::int64_t frame = 0; frame < grid[0]; ++frame, ++offset) {
        offset[1] = offset[0] + static_cast<std::int32_t>(grid[1] * grid[2]);
      }
    }
  }
}

void MockModel::forward(ExecContext& ctx, PathId, const GraphCapacity& capacity,
                        const NamedTensors& in, TensorView out) const {
  const Arena::Scope scope(ctx.arena);
  const TensorView pixels = in["pixel_values"];
  const TensorView offsets = in["cu_seqlens"];
  const auto* const live = in["live"].as<std::int32_t>();
  const TensorView projected =
      ctx.arena.tensor(DType::kF32, {capacity.tokens * kMergeArea, options_.hidden});
  const TensorView lengths = ctx.arena.tensor(DType::kF32, {capacity.tokens * kMergeArea});

  if (ctx.is_recorded) ++forwards_recorded_;
  if (options_.clock_ms) *options_.clock_ms += options_.launch_ms;
  submit_closure(ctx.stream, [=] {  // length of the sequence of every row
    const auto* const offset = offsets.as<std::int32_t>();
    for (std::int64_t s = 0; s + 1 < offsets.shape[0]; ++s) {
      const std::int32_t length = offset[s + 1] - offset[s];
      // Padding sequences must be empty: a kernel that visits them would run over foreign rows.
      const bool broken = length < 0 || (s >= live[1] && length != 0);
      for (std::int32_t row = broken ? 0 : offset[s]; row < (broken ? live[0] : offset[s + 1]);
           ++row) {
        lengths.as<float>()[row] =
            broken ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(length);
      }
    }
  });
  submit_closure(ctx.stream, [=, this] {
    for (std::int64_t row = 0; row < live[0]; ++row) {
      project(pixels.data + row * row_bytes(), projected.as<float>() + row * options_.hidden);
    }
  });
  submit_closure(ctx.stream, [=, this] {
    const std::int64_t hidden = options_.hidden;
    for (std::int64_t token = 0; token < live[0] / kMergeArea; ++token) {
      const float* const group = projected.as<float>() + token * kMergeArea * hidden;
      for (std::int64_t n = 0; n < hidden; ++n) {
        float sum = 0;
        for (std::int64_t i = 0; i < kMergeArea; ++i) sum += group[i * hidden + n];
        out.as<float>()[token * hidden + n] =
            sum / 4.0f + lengths.as<float>()[token * kMergeArea] / 1024.0f;
      }
    }
    ++forwards_run_;
    rows_run_ += live[0];
    if (options_.clock_ms) *options_.clock_ms += static_cast<double>(capacity.tokens);
  });
}

// --- DualModel ---

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
