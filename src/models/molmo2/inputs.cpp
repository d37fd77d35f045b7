// The input buffers of Molmo2.
#include "models/molmo2/inputs.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/common/numbers.h"
#include "models/common/views/siglip.h"

namespace fovea::molmo2 {

namespace {

constexpr const char* kScaled = "scaled_patches";
constexpr const char* kKeys = "pooled_patches";
constexpr const char* kKeyOffsets = "pooled_offsets";
constexpr const char* kQueryOffsets = "token_offsets";
constexpr const char* kMeans = "pooled_means";
constexpr const char* kLivePooled = "live_pooled";  // patches, tokens

common::ViewLayout layout_of(const Processor& processor) {
  return common::siglip_layout({.view = processor.processing().views.view});
}

/// As Inputs::scaled. @param patches of images.
std::vector<std::int64_t> scaled_patches(const common::ViewLayout& layout, std::int64_t views,
                                         std::int64_t patches) {
  const std::int64_t of_view = layout.view.patches();
  std::vector<std::int64_t> scaled;
  for (std::int64_t i = 0; i < views; ++i) {
    scaled.push_back(
        std::clamp<std::int64_t>(patches - i * of_view, 0, layout.views_per_chunk * of_view));
  }
  return scaled;
}

/// The buffers that say which patches a token has.
void write_tokens(const TokenPatches& tokens, InputWriter& writer) {
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

}  // namespace

std::vector<BufferDecl> Inputs::declare(const Processor& processor, const GraphCapacity& capacity) {
  const common::ViewLayout layout = layout_of(processor);
  const std::int64_t views = processor.most_views(capacity.tokens);
  const std::int64_t tokens = capacity.tokens;
  std::vector<BufferDecl> buffers = common::ViewInputs::declare(layout, views);
  buffers.push_back({kScaled, DType::kI32, {views}});
  buffers.push_back({kKeys, DType::kI32, {views * layout.view.patches()}});
  buffers.push_back({kKeyOffsets, DType::kI32, {tokens + 1}, PadRule::kRepeatLast});
  buffers.push_back({kQueryOffsets, DType::kI32, {tokens + 1}, PadRule::kRepeatLast});
  buffers.push_back({kMeans, DType::kI32, {tokens, 4}});
  buffers.push_back({kLivePooled, DType::kI32, {2}});
  return buffers;
}

void Inputs::fill(const Processor& processor, const GraphCapacity& capacity,
                  std::span<const ItemPart> parts, InputWriter& writer) {
  const common::ViewLayout layout = layout_of(processor);
  const std::int64_t most_views = processor.most_views(capacity.tokens);
  const std::int64_t of_view = layout.view.patches();
  std::array<std::int64_t, 2> patches{};  // of images, and of frames
  const auto is_video = [](const ItemPart& part) {
    return part.plan().modality == Modality::kVideo ? 1u : 0u;
  };
  for (const ItemPart& part : parts) patches[is_video(part)] += part.patches();
  const std::int64_t scaled = processor.processing().raw_videos ? patches[0] : 0;
  std::byte* const pixels = common::ViewInputs::fill(
      layout, most_views, (patches[0] + patches[1]) / of_view, parts.size(), writer);
  TokenPatches tokens;
  std::array<std::int64_t, 2> next{0, patches[0]};
  for (const ItemPart& part : parts) {
    std::int64_t& first = next[is_video(part)];
    processor.add_tokens(part.plan(), part.count, first, tokens);
    const auto view = static_cast<std::size_t>(first / of_view);
    writer.copy(pixels + view * layout.view.pixel_bytes(), part.pixels());
    first += part.patches();
  }
  common::write_numbers(writer, kScaled, scaled_patches(layout, most_views, scaled));
  write_tokens(tokens, writer);
}

Inputs Inputs::of(const Processor& processor, const GraphCapacity& capacity,
                  const NamedTensors& in) {
  const auto* live = in[kLivePooled].as<std::int32_t>();
  const Processing& p = processor.processing();
  const std::int64_t views = processor.most_views(capacity.tokens);
  return {.views = common::ViewInputs::of(layout_of(processor), views, in),
          .scaled = in[kScaled],
          .keys = in[kKeys],
          .cu_keys = in[kKeyOffsets],
          .cu_queries = in[kQueryOffsets],
          .means = in[kMeans],
          .most_keys = std::max(p.image_pooling.area(), p.video_pooling.area()),
          .num_keys = {live},
          .tokens = {live + 1}};
}

}  // namespace fovea::molmo2
