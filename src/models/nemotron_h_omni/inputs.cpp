// The input buffers of Nemotron Omni.
#include "models/nemotron_h_omni/inputs.h"

#include <algorithm>
#include <array>

#include "media/resize/resize_fine.h"
#include "models/common/numbers.h"

namespace fovea::nemotron_h_omni {

namespace {

constexpr const char* kSecond = "second";
constexpr const char* kEmbedding = "embedding";
constexpr const char* kPatchRows = "patch_rows";
constexpr const char* kSequences = "sequences";
constexpr const char* kLiveRows = "live_rows";

constexpr auto kPlanes = static_cast<std::int64_t>(media::kLevelBytes);

/// The planes of level bytes are to patch rows what frames are.
common::GridGeometry in_planes(common::GridGeometry grid) {
  grid.temporal_patch_size *= kPlanes;
  return grid;
}

bool is_video(const ItemPart& part) { return part.plan().modality == Modality::kVideo; }

/// The sequences of a batch, one after the other.
struct Sequences {
  std::vector<std::int64_t> embedding;   ///< as in Inputs
  std::vector<std::int64_t> offsets{0};  ///< as Inputs::cu_seqlens
  std::int64_t patches = 0;

  /// @param first_patch the embedding of the first patch of the batch, as the kind of part has it.
  void add(const ItemPart& part, std::int64_t class_rows, std::int64_t first_patch) {
    for (std::int64_t seq = 0; seq < part.seqs(); ++seq) {
      for (std::int64_t i = 0; i < class_rows; ++i) embedding.push_back(i);
      for (std::int64_t i = 0; i < part.patches() / part.seqs(); ++i) {
        embedding.push_back(first_patch + patches++);
      }
      offsets.push_back(std::ssize(embedding));
    }
  }
};

/// As Inputs::patch_rows. @param first_image the first row of images, which are behind videos.
std::vector<std::int64_t> rows_of_patches(std::span<const ItemPart> parts, std::int64_t class_rows,
                                          std::int64_t first_image) {
  std::int64_t video = 0;
  std::int64_t image = first_image;
  std::vector<std::int64_t> rows;
  for (const ItemPart& part : parts) {
    std::int64_t& row = is_video(part) ? video : image;
    for (std::int64_t i = 0; i < part.patches(); ++i) {
      if (i % (part.patches() / part.seqs()) == 0) row += class_rows;
      rows.push_back(row++);
    }
  }
  return rows;
}

}  // namespace

std::vector<BufferDecl> Inputs::declare(const Processor& processor, const GraphCapacity& capacity) {
  GraphCapacity bounded = capacity;
  bounded.seqs =
      std::clamp<std::int64_t>(capacity.tokens / processor.processing().least_view_tokens, 1,
                               std::max<std::int64_t>(1, capacity.seqs));
  const std::int64_t patches = capacity.tokens * processor.processing().geometry.merge_area();
  const std::int64_t rows = patches + bounded.seqs * processor.class_rows();
  std::vector<BufferDecl> buffers =
      common::GridInputs::declare(in_planes(processor.processing().geometry), bounded);
  buffers.push_back({kSecond, DType::kI32, {patches, 4}});
  buffers.push_back({kEmbedding, DType::kI32, {rows}});
  buffers.push_back({kPatchRows, DType::kI32, {patches}});
  buffers.push_back({kSequences, DType::kI32, {bounded.seqs + 1}, PadRule::kRepeatLast});
  buffers.push_back({kLiveRows, DType::kI32, {2}});
  return buffers;
}

void Inputs::fill(const Processor& processor, const GraphCapacity& capacity,
                  std::span<const ItemPart> parts, InputWriter& writer) {
  std::vector<ItemPart> sorted(parts.begin(), parts.end());
  // Not of ranges: clang 14 does not compile the range that it returns.
  std::stable_partition(sorted.begin(), sorted.end(), is_video);
  Sequences sequences;
  std::int64_t video_patches = 0;
  std::int64_t video_rows = 0;
  const std::int64_t as_images = processor.class_rows();
  const std::int64_t as_videos =
      as_images + capacity.tokens * processor.processing().geometry.merge_area();
  for (const ItemPart& part : sorted) {
    sequences.add(part, processor.class_rows(), is_video(part) ? as_videos : as_images);
    if (!is_video(part)) continue;
    video_patches = sequences.patches;
    video_rows = sequences.offsets.back();
  }
  const common::PatchTables tables =
      common::GridInputs::fill(in_planes(processor.processing().geometry), sorted, writer);
  for (std::size_t i = 0; i < tables.positions.size(); i += 4) {  // y, x, height, width
    auto* const grid = &tables.positions[i + 2];
    grid[0] = grid[1] = std::max(grid[0], grid[1]);
  }
  std::vector<std::int64_t> second(tables.sources.begin(),
                                   tables.sources.begin() + 4 * video_patches);
  for (std::size_t i = 0; i < second.size(); i += 4) second[i] += kPlanes * second[i + 2];
  common::write_numbers(writer, kSecond, second, 4);
  common::write_numbers(writer, kEmbedding, sequences.embedding);
  common::write_numbers(writer, kPatchRows,
                        rows_of_patches(parts, processor.class_rows(), video_rows));
  common::write_numbers(writer, kSequences, sequences.offsets);
  common::write_numbers(writer, kLiveRows, std::array{sequences.offsets.back(), video_patches});
}

Inputs Inputs::of(const Processor&, const GraphCapacity&, const NamedTensors& in) {
  const auto* live = in[kLiveRows].as<std::int32_t>();
  return {.grid = common::GridInputs::of(in),
          .second = in[kSecond],
          .embedding = in[kEmbedding],
          .patch_rows = in[kPatchRows],
          .cu_seqlens = in[kSequences],
          .rows = {live},
          .of_videos = {live + 1}};
}

}  // namespace fovea::nemotron_h_omni
