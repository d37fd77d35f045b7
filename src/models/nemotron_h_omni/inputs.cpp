// The input buffers of Nemotron Omni.
#include "models/nemotron_h_omni/inputs.h"

#include <algorithm>
#include <array>

#include "media/resize/resize_fine.h"
#include "models/common/numbers.h"

namespace fovea::nemotron_h_omni {

namespace {

using common::narrow;

constexpr const char* kSecond = "second";
constexpr const char* kEmbedding = "embedding";
constexpr const char* kPatchRows = "patch_rows";
constexpr const char* kSequences = "sequences";
constexpr const char* kLiveRows = "live_rows";

/// The planes of level bytes are to patch rows what frames are.
common::GridGeometry in_planes(common::GridGeometry grid) {
  grid.temporal_patch_size *= static_cast<std::int64_t>(media::kLevelBytes);
  return grid;
}

std::int64_t most_patches(const Processor& processor, const GraphCapacity& capacity) {
  return capacity.tokens * processor.processing().geometry.merge_area();
}

/// Bytes between the two frames of a pair; 0 of an image.
std::int64_t second_frame(const ItemPlan& plan) {
  if (plan.modality == Modality::kImage) return 0;
  return Processor::frame_bytes(plan);
}

/// Which rows the sequences have, one part after the other.
struct Rows {
  std::vector<std::int64_t> embedding;
  std::vector<std::int64_t> patch_rows;
  std::vector<std::int64_t> sequences{0};

  /// @param first place of the first patch of the batch.
  void add_sequence(std::int64_t class_rows, std::int64_t patches, std::int64_t first) {
    for (std::int64_t i = 0; i < class_rows; ++i) embedding.push_back(i);
    for (std::int64_t i = 0; i < patches; ++i) {
      const std::int64_t patch = std::ssize(patch_rows);
      patch_rows.push_back(std::ssize(embedding));
      embedding.push_back(first + patch);
    }
    sequences.push_back(std::ssize(embedding));
  }
};

}  // namespace

std::vector<BufferDecl> Inputs::declare(const Processor& processor, const GraphCapacity& capacity) {
  GraphCapacity bounded = capacity;
  bounded.seqs =
      std::clamp<std::int64_t>(capacity.tokens / processor.processing().least_view_tokens, 1,
                               std::max<std::int64_t>(1, capacity.seqs));
  const std::int64_t patches = most_patches(processor, capacity);
  const std::int64_t rows = patches + bounded.seqs * processor.class_rows();
  std::vector<BufferDecl> buffers =
      common::GridInputs::declare(in_planes(processor.processing().geometry), bounded);
  buffers.push_back({kSecond, DType::kI32, {patches, 4}});
  buffers.push_back({kEmbedding, DType::kI32, {rows}});
  buffers.push_back({kPatchRows, DType::kI32, {patches}});
  buffers.push_back({kSequences, DType::kI32, {bounded.seqs + 1}, PadRule::kRepeatLast});
  buffers.push_back({kLiveRows, DType::kI32, {1}});
  return buffers;
}

void Inputs::fill(const Processor& processor, const GraphCapacity& capacity,
                  std::span<const ItemPart> parts, InputWriter& writer) {
  const common::PatchTables tables =
      common::GridInputs::fill(in_planes(processor.processing().geometry), parts, writer);
  std::vector<std::int64_t> second(tables.sources.begin(), tables.sources.end());
  Rows rows;
  for (const ItemPart& part : parts) {
    const ItemPlan& plan = part.plan();
    const auto first_patch = static_cast<std::size_t>(std::ssize(rows.patch_rows));
    for (std::size_t i = 4 * first_patch;
         i < 4 * (first_patch + static_cast<std::size_t>(part.patches())); i += 4) {
      tables.positions[i + 2] = tables.positions[i + 3] =
          narrow(std::max(plan.grid[1], plan.grid[2]));
      second[i] += second_frame(plan);
    }
    const bool is_video = plan.modality == Modality::kVideo;
    const std::int64_t first =
        processor.class_rows() + (is_video ? most_patches(processor, capacity) : 0);
    for (std::int64_t seq = 0; seq < part.seqs(); ++seq) {
      rows.add_sequence(processor.class_rows(), part.patches() / part.seqs(), first);
    }
  }
  common::write_numbers(writer, kSecond, second, 4);
  common::write_numbers(writer, kEmbedding, rows.embedding);
  common::write_numbers(writer, kPatchRows, rows.patch_rows);
  common::write_numbers(writer, kSequences, rows.sequences);
  common::write_numbers(writer, kLiveRows, std::array{rows.sequences.back()});
}

Inputs Inputs::of(const Processor&, const GraphCapacity&, const NamedTensors& in) {
  return {.grid = common::GridInputs::of(in),
          .second = in[kSecond],
          .embedding = in[kEmbedding],
          .patch_rows = in[kPatchRows],
          .cu_seqlens = in[kSequences],
          .rows = {in[kLiveRows].as<std::int32_t>()}};
}

}  // namespace fovea::nemotron_h_omni
