#include "graph/mock_model.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/check.h"
#include "fovea/tower/ops/context.h"
#include "graph/mock_parts.h"

namespace fovea::test {

namespace {

constexpr std::int64_t kMergeArea = 4;
constexpr std::int64_t kMostWidth = 48;

}  // namespace

MockModel::MockModel(MockOptions options)
    : options_(std::move(options)),
      weight_(random_floats(to_size(options_.hidden * options_.width), 1)) {
  FOVEA_CHECK(options_.width <= kMostWidth, kInvalidArgument,
              "MockModel: expected a width of at most ", kMostWidth, ", got ", options_.width);
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
  const std::int64_t patches = plan.grid[1] * plan.grid[2];
  if (patches > 0) plan.spec.units[0] = {num_frames, patches, patches / kMergeArea};
  plan.unit_bytes[0] = to_size(patches * row_bytes());
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
  std::array<float, kMostWidth> x{};  // replays allocate nothing
  for (std::int64_t k = 0; k < options_.width; ++k) x[to_size(k)] = value(row, k);
  const float* weight = weight_.data();
  for (std::int64_t n = 0; n < options_.hidden; ++n, weight += options_.width) {
    float sum = 0.25f;  // a bias, so that empty input does not look like empty output
    for (std::int64_t k = 0; k < options_.width; ++k) sum += x.data()[k] * weight[k];
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

void MockModel::fill_inputs(PathId, const GraphCapacity&, std::span<const ItemPart> parts,
                            InputWriter& writer) const {
  if (options_.before_fill) options_.before_fill();
  std::int64_t rows = 0;
  std::int64_t seqs = 0;
  for (const ItemPart& part : parts) {
    rows += part.patches();
    seqs += part.seqs();
  }
  if (options_.forgotten_buffer != "pixel_values") {
    std::byte* to = writer.claim("pixel_values", rows).data;
    for (const ItemPart& part : parts) {
      writer.copy(to, part.pixels());
      to += part.pixels().size();
    }
  }
  if (options_.forgotten_buffer != "live") {
    auto* const live = writer.claim("live", 2).as<std::int32_t>();
    live[0] = static_cast<std::int32_t>(rows);
    live[1] = static_cast<std::int32_t>(seqs);
  }
  if (options_.forgotten_buffer != "cu_seqlens") {
    auto* offset = writer.claim("cu_seqlens", seqs + 1).as<std::int32_t>();
    *offset = 0;
    for (const ItemPart& part : parts) {
      for (std::int64_t frame = 0; frame < part.count; ++frame, ++offset) {
        offset[1] = offset[0] + static_cast<std::int32_t>(part.units().patches);
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
  if (options_.in_forward) options_.in_forward();
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

}  // namespace fovea::test
