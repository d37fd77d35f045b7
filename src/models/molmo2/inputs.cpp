// The input buffers of Molmo2.
#include "models/molmo2/inputs.h"

#include <algorithm>

namespace fovea::molmo2 {

namespace {

constexpr const char* kScaled = "scaled_patches";
constexpr const char* kKeys = "pooled_patches";
constexpr const char* kKeyOffsets = "pooled_offsets";
constexpr const char* kQueryOffsets = "token_offsets";
constexpr const char* kLivePooled = "live_pooled";

/// Entries of the last.
enum LivePooled : std::int64_t { kLiveKeys, kLiveTokens, kNumLivePooled };

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

/// For every patch, its row among those of its chunk scaled as of images, or behind them, among
/// those of raw frames. @param views of the graph.
void write_scaled(const common::ViewLayout& layout, std::int64_t views,
                  std::span<const ItemPart> parts, std::int32_t* to) {
  const std::int64_t patches = layout.view.patches();
  const std::int64_t step = layout.views_per_chunk;
  std::int64_t view = 0;
  for (const ItemPart& part : parts) {
    const bool is_raw = part.plan().modality == Modality::kVideo;
    for (const std::int64_t end = view + part.patches() / patches; view < end; ++view) {
      const std::int64_t chunk = view / step * step;
      const std::int64_t scaled = std::min(step, views - chunk) * patches;
      std::int64_t row = (view - chunk) * patches + (is_raw ? scaled : 0);
      for (std::int64_t i = 0; i < patches; ++i) *to++ = narrow(row++);
    }
  }
}

}  // namespace

std::vector<BufferDecl> Inputs::declare(const common::ViewLayout& layout,
                                        const Processing& processing, std::int64_t views,
                                        std::int64_t tokens) {
  std::vector<BufferDecl> buffers = common::ViewInputs::declare(layout, views);
  if (processing.raw_videos) {
    buffers.push_back({kScaled, DType::kI32, {views * layout.view.patches()}});
  }
  buffers.push_back({kKeys, DType::kI32, {views * layout.view.patches()}});
  buffers.push_back({kKeyOffsets, DType::kI32, {tokens + 1}, PadRule::kRepeatLast});
  buffers.push_back({kQueryOffsets, DType::kI32, {tokens + 1}, PadRule::kRepeatLast});
  buffers.push_back({kLivePooled, DType::kI32, {kNumLivePooled}});
  return buffers;
}

void Inputs::fill(const common::ViewLayout& layout, std::int64_t views, const Processor& processor,
                  std::span<const ItemPart> parts, InputWriter& writer) {
  const std::int64_t patches = layout.view.patches();
  TokenPatches tokens;
  std::int64_t first = 0;
  for (const ItemPart& part : parts) {
    processor.add_tokens(part.plan(), part.count, first, tokens);
    first += part.patches();
  }
  std::byte* to = common::ViewInputs::fill(layout, views, first / patches, parts.size(), writer);
  for (const ItemPart& part : parts) {
    const std::span<const std::uint8_t> pixels = part.pixels();
    writer.copy(to, pixels);
    to += pixels.size();
  }
  if (processor.processing().raw_videos) {
    write_scaled(layout, views, parts, writer.claim(kScaled, first).as<std::int32_t>());
  }
  const auto num_tokens = std::ssize(tokens.ends);
  const auto num_keys = std::ssize(tokens.patches);
  std::ranges::transform(tokens.patches, writer.claim(kKeys, num_keys).as<std::int32_t>(), narrow);
  auto* offsets = writer.claim(kKeyOffsets, num_tokens + 1).as<std::int32_t>();
  *offsets = 0;
  std::ranges::transform(tokens.ends, offsets + 1, narrow);
  auto* queries = writer.claim(kQueryOffsets, num_tokens + 1).as<std::int32_t>();
  for (std::int64_t i = 0; i <= num_tokens; ++i) queries[i] = narrow(i);
  auto* live = writer.claim(kLivePooled, kNumLivePooled).as<std::int32_t>();
  live[kLiveKeys] = narrow(num_keys);
  live[kLiveTokens] = narrow(num_tokens);
}

Inputs Inputs::of(const common::ViewLayout& layout, const Processing& processing,
                  std::int64_t views, const NamedTensors& in) {
  const auto* live = in[kLivePooled].as<std::int32_t>();
  return {.views = common::ViewInputs::of(layout, views, in),
          .scaled = processing.raw_videos ? in[kScaled] : ConstTensorView{},
          .keys = in[kKeys],
          .cu_keys = in[kKeyOffsets],
          .cu_queries = in[kQueryOffsets],
          .num_keys = {live + kLiveKeys},
          .tokens = {live + kLiveTokens}};
}

}  // namespace fovea::molmo2
