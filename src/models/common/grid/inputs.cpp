// The input buffers of towers over grids: declared, filled and read in one place.
#include "models/common/grid/inputs.h"

#include <algorithm>

#include "models/common/frames.h"
#include "models/common/numbers.h"

namespace fovea::common {

namespace {

constexpr const char* kLive = "live";
constexpr const char* kCuSeqlens = "cu_seqlens";
constexpr const char* kPositions = "positions";
constexpr const char* kSources = "sources";
constexpr const char* kPixels = "pixels";

/// Entries of the buffer "live".
enum Live : std::int64_t { kLivePatches, kLiveTokens, kLiveSeqs, kNumLive };

}  // namespace

std::vector<GridRun> runs_of(const GridGeometry& geometry, std::span<const ItemPart> parts) {
  std::vector<GridRun> runs;
  for (const ItemPart& part : parts) {
    const ItemPlan& plan = part.plan();
    std::span<const std::uint8_t> pixels = part.pixels();
    if (geometry.frames == FrameUse::kJoined) {
      GridRun& run = runs.emplace_back(GridRun{plan, pixels, part.patches(), part.seqs()});
      if (part.team.size > 1) {
        const ItemUnits unit = part.units();
        run.first_patch = part.team.of(unit.rows).first * geometry.merge_area();
        run.all_patches = unit.patches;
      }
      continue;
    }
    const auto frame_bytes =
        static_cast<std::size_t>(plan.resized_width_px * plan.resized_height_px * 3);
    while (!pixels.empty()) {
      const auto unit = pixels.first(std::min(plan.unit_bytes[0], pixels.size()));
      const auto frames = static_cast<std::int64_t>(unit.size() / frame_bytes);
      runs.push_back({.plan = plan,
                      .pixels = unit,
                      .patches = frames * plan.grid[1] * plan.grid[2],
                      .seqs = geometry.frames == FrameUse::kApart ? frames : 1,
                      .tokens = part.units().rows});
      pixels = pixels.subspan(unit.size());
    }
  }
  return runs;
}

std::int64_t patch_capacity(const GridGeometry& geometry, const GraphCapacity& capacity) {
  // Items have as many frames as sequences are counted of them, and units no more than these.
  return capacity.tokens * geometry.merge_area() *
         std::min(geometry.frames_apart(), std::max<std::int64_t>(capacity.seqs, 1));
}

ItemPlan plan_view(const GridGeometry& geometry, Size2d size) {
  ItemPlan plan;
  plan.resized_height_px = size.height_px;
  plan.resized_width_px = size.width_px;
  plan.grid = {1, size.height_px / geometry.patch_size, size.width_px / geometry.patch_size};
  plan.pixel_bytes = static_cast<std::size_t>(size.height_px * size.width_px * 3);
  plan.spec.input_rows = plan.grid[1] * plan.grid[2];
  return plan;
}

std::vector<GridRun> runs_of(std::span<const ItemPart> parts, const ViewsOf& views_of) {
  std::vector<GridRun> runs;
  for (const ItemPart& part : parts) {
    const std::vector<ItemPlan> views = views_of(part.plan());
    std::span<const std::uint8_t> pixels = part.pixels();
    for (std::int64_t unit = 0; unit < part.count; ++unit) {
      for (const ItemPlan& view : views) {
        runs.push_back({view, pixels.first(view.pixel_bytes), view.spec.input_rows});
        pixels = pixels.subspan(view.pixel_bytes);
      }
    }
  }
  return runs;
}

std::vector<BufferDecl> GridInputs::declare(const GridGeometry& geometry,
                                            const GraphCapacity& capacity) {
  const std::int64_t patches = patch_capacity(geometry, capacity);
  // A patch takes patch_dim bytes if no frame is repeated; still images need half of it. Of a team
  // each member has all pixels.
  return {{kLive, DType::kI32, {kNumLive}},
          {kCuSeqlens, DType::kI32, {capacity.seqs + 1}, PadRule::kRepeatLast},
          {kPositions, DType::kI32, {patches, 4}},
          {kSources, DType::kI32, {patches, 4}},
          {kPixels, DType::kU8, {capacity.team * patches * geometry.patch_dim()}}};
}

PatchTables GridInputs::fill(const GridGeometry& geometry, std::span<const ItemPart> parts,
                             InputWriter& writer) {
  const std::vector<GridRun> runs = runs_of(geometry, parts);
  return fill(geometry, runs, writer);
}

PatchTables GridInputs::fill(const GridGeometry& geometry, std::span<const GridRun> runs,
                             InputWriter& writer) {
  std::int64_t num_patches = 0;
  std::int64_t num_tokens = 0;
  std::int64_t num_seqs = 0;
  std::int64_t num_bytes = 0;
  for (const GridRun& run : runs) {
    num_patches += run.patches;
    num_tokens += run.tokens > 0 ? run.tokens : run.patches / geometry.merge_area();
    num_seqs += run.seqs;
    num_bytes += std::ssize(run.pixels);
  }
  check_pixel_offsets(num_bytes, runs.size());
  const TensorView position_rows = writer.claim(kPositions, num_patches);
  const TensorView source_rows = writer.claim(kSources, num_patches);
  const TensorView pixel_bytes = writer.claim(kPixels, num_bytes);
  auto* offsets = writer.claim(kCuSeqlens, num_seqs + 1).as<std::int32_t>();
  auto* live = writer.claim(kLive, kNumLive).as<std::int32_t>();
  live[kLivePatches] = narrow(num_patches);
  live[kLiveTokens] = narrow(num_tokens);
  live[kLiveSeqs] = narrow(num_seqs);

  std::size_t row = 0;
  std::size_t byte = 0;
  *offsets = 0;
  for (const GridRun& run : runs) {
    const auto rows = static_cast<std::size_t>(run.patches);
    write_patch_rows(geometry, run.plan, static_cast<std::int64_t>(byte), run.pixels.size(),
                     {position_rows.as<std::int32_t>() + 4 * row, 4 * rows},
                     {source_rows.as<std::int32_t>() + 4 * row, 4 * rows}, run.first_patch);
    writer.copy(pixel_bytes.data + byte, run.pixels);
    const std::int64_t attended = run.all_patches > 0 ? run.all_patches : run.patches;
    for (std::int64_t seq = 0; seq < run.seqs; ++seq, ++offsets) {
      offsets[1] = offsets[0] + narrow(attended / run.seqs);
    }
    row += rows;
    byte += run.pixels.size();
  }
  return {{position_rows.as<std::int32_t>(), 4 * row}, {source_rows.as<std::int32_t>(), 4 * row}};
}

GridInputs GridInputs::of(const NamedTensors& in) {
  const auto* live = in[kLive].as<std::int32_t>();
  return {.pixels = in[kPixels],
          .sources = in[kSources],
          .positions = in[kPositions],
          .cu_seqlens = in[kCuSeqlens],
          .patches = {live + kLivePatches},
          .tokens = {live + kLiveTokens},
          .seqs = {live + kLiveSeqs}};
}

void write_patch_rows(const GridGeometry& geometry, const ItemPlan& plan, std::int64_t pixel_offset,
                      std::size_t pixel_bytes, std::span<std::int32_t> positions,
                      std::span<std::int32_t> sources, std::int64_t first_patch) {
  const std::int64_t h = plan.grid[1];
  const std::int64_t w = plan.grid[2];
  const std::int64_t m = geometry.spatial_merge_size;
  const std::int64_t p = geometry.patch_size;
  const bool tiled = plan.layout == PixelLayout::kPatches;
  const std::int64_t num_frames =
      static_cast<std::int64_t>(pixel_bytes) / (plan.resized_width_px * plan.resized_height_px * 3);
  const std::int64_t row_stride = tiled ? p : plan.resized_width_px * 3;
  const std::int64_t frame_stride = (tiled ? p : plan.resized_height_px) * row_stride;
  const std::int64_t channel_stride =
      tiled ? std::min(geometry.patch_frames(), num_frames) * frame_stride : 0;
  auto position = positions.begin();
  auto source = sources.begin();
  std::int64_t tile = pixel_offset;  // of the next patch, where each has its own
  std::int64_t left_out = first_patch;
  const auto emit = [&](std::int64_t y, std::int64_t x, std::int64_t frame_offset,
                        std::int64_t next_frame) {
    const std::int64_t offset = tiled ? tile : frame_offset + y * p * row_stride + x * p * 3;
    tile += 3 * channel_stride;
    if (left_out-- > 0 || position == positions.end()) return;
    for (const std::int64_t v : {y, x, h, w}) *position++ = narrow(v);
    for (const std::int64_t v : {offset, row_stride, next_frame, channel_stride}) {
      *source++ = narrow(v);
    }
  };
  for (std::int64_t first = 0; first < num_frames; first += geometry.patch_frames()) {
    // A still image, or a last odd frame, is repeated: the next frame is the same one. A patch that
    // covers one frame has no use for the next.
    const std::int64_t next_frame = first + 1 < num_frames ? frame_stride : 0;
    const std::int64_t frame_offset = pixel_offset + first * frame_stride;
    for (std::int64_t block_y = 0; block_y < h; block_y += m) {
      for (std::int64_t block_x = 0; block_x < w; block_x += m) {
        for (std::int64_t y = block_y; y < block_y + m; ++y) {
          for (std::int64_t x = block_x; x < block_x + m; ++x) emit(y, x, frame_offset, next_frame);
        }
      }
    }
  }
}

void embed_patches(ExecContext& ctx, const GridGeometry& geometry, const PatchEmbedding& embedding,
                   const GridInputs& in, TensorView x) {
  embed_patches(ctx, embedding,
                {.pixels = in.pixels,
                 .sources = in.sources,
                 .patch_size = geometry.patch_size,
                 .frames = geometry.patch_frames(),
                 .rows = in.patches},
                x);
}

AttendedRows rotated_rows(ExecContext& ctx, const GridInputs& in, const Tensor& inv_freq,
                          std::int64_t num_rows) {
  // Not the longest image: what the processor allows exceeds the rows of any graph, and an exact
  // bound in eager runs alone would let them choose another kernel than replays.
  const ops::Sequences sequences{.cu_seqlens = in.cu_seqlens,
                                 .seqs = in.seqs,
                                 .max_seqlen = ctx.all_rows(num_rows),
                                 .rows = in.patches};
  return rotated_rows(ctx, sequences, in.positions, inv_freq);
}

}  // namespace fovea::common
