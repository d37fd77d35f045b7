// The input buffers of Nemotron Omni.
#include "models/nemotron_h_omni/inputs.h"

#include <algorithm>

#include "media/resize/resize_fine.h"

namespace fovea::nemotron_h_omni {

namespace {

constexpr const char* kSecond = "second";
constexpr const char* kEmbedding = "embedding";
constexpr const char* kPatchRows = "patch_rows";
constexpr const char* kSequences = "sequences";
constexpr const char* kLiveRows = "live_rows";

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

/// The planes of level bytes are to patch rows what frames are.
common::GridGeometry in_planes(common::GridGeometry grid) {
  grid.temporal_patch_size *= static_cast<std::int64_t>(media::kLevelBytes);
  return grid;
}

/// Bytes between the two frames of a pair; 0 of an image.
std::int64_t second_frame(const ItemPlan& plan) {
  if (plan.modality == Modality::kImage) return 0;
  return plan.resized_height_px * plan.resized_width_px * 3 *
         static_cast<std::int64_t>(media::kLevelBytes);
}

/// The places that one part after the other is written to.
struct Cursor {
  std::int32_t* second;
  std::int32_t* embedding;
  std::int32_t* patch_rows;
  std::int32_t* sequences;  ///< at the end of the last one
  std::int64_t patch = 0;
  std::int64_t row = 0;
};

/// @param tables of the whole batch. @param most patches of the graph.
void write_part(const Config& c, const ItemPart& part, const common::PatchTables& tables,
                std::int64_t most, Cursor& to) {
  const bool is_video = part.plan().modality == Modality::kVideo;
  const std::int64_t first = c.class_rows() + (is_video ? most : 0);
  const std::int64_t patches = part.patches() / part.seqs();
  const std::int64_t side = std::max(part.plan().grid[1], part.plan().grid[2]);
  for (std::int64_t seq = 0; seq < part.seqs(); ++seq) {
    for (std::int64_t i = 0; i < c.class_rows(); ++i) *to.embedding++ = narrow(i);
    to.row += c.class_rows();
    for (std::int64_t i = 0; i < patches; ++i, ++to.patch, ++to.row) {
      const auto at = static_cast<std::size_t>(4 * to.patch);
      tables.positions[at + 2] = tables.positions[at + 3] = narrow(side);
      to.second =
          std::copy_n(tables.sources.begin() + static_cast<std::ptrdiff_t>(at), 4, to.second);
      to.second[-4] += narrow(second_frame(part.plan()));
      *to.embedding++ = narrow(first + to.patch);
      *to.patch_rows++ = narrow(to.row);
    }
    *++to.sequences = narrow(to.row);
  }
}

}  // namespace

std::vector<BufferDecl> Inputs::declare(const Config& config, std::int64_t least_tokens,
                                        const GraphCapacity& capacity) {
  GraphCapacity bounded = capacity;
  bounded.seqs = std::max<std::int64_t>(1, std::min(capacity.seqs, capacity.tokens / least_tokens));
  const std::int64_t patches = capacity.tokens * config.grid.merge_area();
  const std::int64_t rows = patches + bounded.seqs * config.class_rows();
  std::vector<BufferDecl> buffers = common::GridInputs::declare(in_planes(config.grid), bounded);
  buffers.push_back({kSecond, DType::kI32, {patches, 4}});
  buffers.push_back({kEmbedding, DType::kI32, {rows}});
  buffers.push_back({kPatchRows, DType::kI32, {patches}});
  buffers.push_back({kSequences, DType::kI32, {bounded.seqs + 1}, PadRule::kRepeatLast});
  buffers.push_back({kLiveRows, DType::kI32, {1}});
  return buffers;
}

void Inputs::fill(const Config& config, const GraphCapacity& capacity,
                  std::span<const ItemPart> parts, InputWriter& writer) {
  const common::PatchTables tables =
      common::GridInputs::fill(in_planes(config.grid), parts, writer);
  std::int64_t seqs = 0;
  std::int64_t patches = 0;
  for (const ItemPart& part : parts) {
    seqs += part.seqs();
    patches += part.patches();
  }
  const std::int64_t rows = patches + seqs * config.class_rows();
  Cursor to{.second = writer.claim(kSecond, patches).as<std::int32_t>(),
            .embedding = writer.claim(kEmbedding, rows).as<std::int32_t>(),
            .patch_rows = writer.claim(kPatchRows, patches).as<std::int32_t>(),
            .sequences = writer.claim(kSequences, seqs + 1).as<std::int32_t>()};
  *writer.claim(kLiveRows, 1).as<std::int32_t>() = narrow(rows);
  *to.sequences = 0;
  for (const ItemPart& part : parts) {
    write_part(config, part, tables, capacity.tokens * config.grid.merge_area(), to);
  }
}

Inputs Inputs::of(const NamedTensors& in) {
  return {.grid = common::GridInputs::of(in),
          .second = in[kSecond],
          .embedding = in[kEmbedding],
          .patch_rows = in[kPatchRows],
          .cu_seqlens = in[kSequences],
          .rows = {in[kLiveRows].as<std::int32_t>()}};
}

}  // namespace fovea::nemotron_h_omni
