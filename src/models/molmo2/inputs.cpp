// The input buffers of Molmo2.
#include "models/molmo2/inputs.h"

#include <algorithm>
#include <array>

#include "models/common/numbers.h"

namespace fovea::molmo2 {

namespace {

constexpr const char* kScaled = "scaled_patches";
constexpr const char* kKeys = "pooled_patches";
constexpr const char* kKeyOffsets = "pooled_offsets";
constexpr const char* kQueryOffsets = "token_offsets";
constexpr const char* kMeans = "pooled_means";
constexpr const char* kLivePooled = "live_pooled";  // patches, tokens

/// For every patch, its row among those of its chunk scaled as of images, or behind them, among
/// those of raw frames. @param views of the graph.
std::vector<std::int64_t> scaled_rows(const common::ViewLayout& layout, std::int64_t views,
                                      std::span<const ItemPart> parts) {
  const std::int64_t patches = layout.view.patches();
  const std::int64_t step = layout.views_per_chunk;
  std::vector<std::int64_t> rows;
  for (const ItemPart& part : parts) {
    const bool is_raw = part.plan().modality == Modality::kVideo;
    for (std::int64_t i = 0; i < part.patches(); ++i) {
      const std::int64_t chunk = std::ssize(rows) / patches / step * step;  // its first view
      const std::int64_t scaled = std::min(step, views - chunk) * patches;
      rows.push_back(std::ssize(rows) - chunk * patches + (is_raw ? scaled : 0));
    }
  }
  return rows;
}

}  // namespace

std::vector<BufferDecl> Inputs::declare(const Processor& processor, const GraphCapacity& capacity) {
  const std::int64_t views = processor.most_views(capacity.tokens);
  const std::int64_t patches = views * processor.processing().view.patches();
  const std::int64_t tokens = capacity.tokens;
  std::vector<BufferDecl> buffers = common::ViewInputs::declare(processor.layout(), views);
  if (processor.processing().raw_videos) buffers.push_back({kScaled, DType::kI32, {patches}});
  buffers.push_back({kKeys, DType::kI32, {patches}});
  buffers.push_back({kKeyOffsets, DType::kI32, {tokens + 1}, PadRule::kRepeatLast});
  buffers.push_back({kQueryOffsets, DType::kI32, {tokens + 1}, PadRule::kRepeatLast});
  buffers.push_back({kMeans, DType::kI32, {tokens, 4}});
  buffers.push_back({kLivePooled, DType::kI32, {2}});
  return buffers;
}

void Inputs::fill(const Processor& processor, const GraphCapacity& capacity,
                  std::span<const ItemPart> parts, InputWriter& writer) {
  const common::ViewLayout& layout = processor.layout();
  const std::int64_t most_views = processor.most_views(capacity.tokens);
  TokenPatches tokens;
  std::int64_t patches = 0;
  for (const ItemPart& part : parts) {
    processor.add_tokens(part.plan(), part.count, patches, tokens);
    patches += part.patches();
  }
  std::byte* to = common::ViewInputs::fill(layout, most_views, patches / layout.view.patches(),
                                           parts.size(), writer);
  for (const ItemPart& part : parts) {
    writer.copy(to, part.pixels());
    to += part.pixels().size();
  }
  if (processor.processing().raw_videos) {
    common::write_numbers(writer, kScaled, scaled_rows(layout, most_views, parts));
  }
  std::vector<std::int64_t> queries{0};
  std::vector<std::int64_t> means;
  for (std::size_t i = 1; i < tokens.offsets.size(); ++i) {
    const std::int64_t first = tokens.offsets[i - 1];
    queries.push_back(std::ssize(queries));
    means.insert(means.end(), {first, tokens.offsets[i] - first, 1, 0});
  }
  common::write_numbers(writer, kKeys, tokens.patches);
  common::write_numbers(writer, kKeyOffsets, tokens.offsets);
  common::write_numbers(writer, kQueryOffsets, queries);
  common::write_numbers(writer, kMeans, means, 4);
  common::write_numbers(writer, kLivePooled,
                        std::array{std::ssize(tokens.patches), queries.back()});
}

Inputs Inputs::of(const Processor& processor, const GraphCapacity& capacity,
                  const NamedTensors& in) {
  const auto* live = in[kLivePooled].as<std::int32_t>();
  const Processing& p = processor.processing();
  return {.views =
              common::ViewInputs::of(processor.layout(), processor.most_views(capacity.tokens), in),
          .scaled = p.raw_videos ? in[kScaled] : ConstTensorView{},
          .keys = in[kKeys],
          .cu_keys = in[kKeyOffsets],
          .cu_queries = in[kQueryOffsets],
          .means = in[kMeans],
          .most_keys = std::max(p.image_pooling.area(), p.video_pooling.area()),
          .num_keys = {live},
          .tokens = {live + 1}};
}

}  // namespace fovea::molmo2
