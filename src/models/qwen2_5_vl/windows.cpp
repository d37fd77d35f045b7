// Windows of neighbouring tokens: their order, and the buffers that tell the tower.
#include "models/qwen2_5_vl/windows.h"

#include <algorithm>

namespace fovea::qwen2_5_vl {

namespace {

constexpr const char* kCuSeqlens = "cu_window_seqlens";
constexpr const char* kPlaces = "places";
constexpr const char* kLive = "live_windows";

/// Moves the values of each token to its place. @param values of all tokens, equally many of each.
void reorder(std::span<const std::int32_t> tokens, std::span<std::int32_t> values) {
  if (tokens.empty()) return;
  const std::vector<std::int32_t> before(values.begin(), values.end());
  const std::size_t width = values.size() / tokens.size();
  auto out = values.begin();
  for (const std::int32_t token : tokens) {
    out = std::copy_n(before.data() + static_cast<std::size_t>(token) * width, width, out);
  }
}

}  // namespace

void WindowOrder::append(const std::array<std::int64_t, 3>& grid,
                         const common::GridGeometry& geometry, std::int64_t side) {
  const std::int64_t height = grid[1] / geometry.spatial_merge_size;
  const std::int64_t width = grid[2] / geometry.spatial_merge_size;
  auto frame = static_cast<std::int64_t>(tokens.size());  // first token of a frame
  for (std::int64_t t = 0; t < grid[0]; ++t, frame += height * width) {
    for (std::int64_t top = 0; top < height; top += side) {
      for (std::int64_t left = 0; left < width; left += side) {
        for (std::int64_t y = top; y < std::min(top + side, height); ++y) {
          for (std::int64_t x = left; x < std::min(left + side, width); ++x) {
            tokens.push_back(static_cast<std::int32_t>(frame + y * width + x));
          }
        }
        cu_seqlens.push_back(static_cast<std::int32_t>(std::ssize(tokens) * geometry.merge_area()));
      }
    }
  }
}

std::vector<BufferDecl> WindowInputs::declare(const Config& config, const GraphCapacity& capacity) {
  const std::int64_t side = config.window_side();
  // A frame of a x b windows has at least ((a - 1) side + 1) ((b - 1) side + 1) tokens, which is
  // more than (a b - 1) side: all frames together have at most (tokens + frames (side - 1)) / side.
  const std::int64_t windows =
      std::min(capacity.tokens, (capacity.tokens + capacity.seqs * (side - 1)) / side);
  return {{kCuSeqlens, DType::kI32, {windows + 1}, PadRule::kRepeatLast},
          {kPlaces, DType::kI32, {capacity.tokens}},
          {kLive, DType::kI32, {1}}};
}

void WindowInputs::fill(const Config& config, std::span<const common::GridRun> runs,
                        const common::PatchTables& rows, InputWriter& writer) {
  WindowOrder order;
  for (const common::GridRun& run : runs) {
    const auto& [t, h, w] = run.plan.grid;
    order.append({run.seqs, h, w}, config.grid, config.window_side());
  }
  reorder(order.tokens, rows.positions);
  reorder(order.tokens, rows.sources);
  auto* places = writer.claim(kPlaces, std::ssize(order.tokens)).as<std::int32_t>();
  for (std::size_t k = 0; k < order.tokens.size(); ++k) {
    places[order.tokens[k]] = static_cast<std::int32_t>(k);
  }
  const std::int64_t entries = std::ssize(order.cu_seqlens);
  std::ranges::copy(order.cu_seqlens, writer.claim(kCuSeqlens, entries).as<std::int32_t>());
  *writer.claim(kLive, 1).as<std::int32_t>() = static_cast<std::int32_t>(entries - 1);
}

WindowInputs WindowInputs::of(const NamedTensors& in) {
  return {.cu_seqlens = in[kCuSeqlens],
          .places = in[kPlaces],
          .windows = {in[kLive].as<std::int32_t>()}};
}

}  // namespace fovea::qwen2_5_vl
