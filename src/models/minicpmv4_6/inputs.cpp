// Buffers of windows, and the order of patches.
#include "models/minicpmv4_6/inputs.h"

#include <algorithm>
#include <array>

#include "models/common/numbers.h"

namespace fovea::minicpmv4_6 {

namespace {

using common::narrow;

constexpr const char* kWindowSeqlens = "cu_windows";
constexpr const char* kMergedSeqlens = "cu_merged";
constexpr const char* kLive = "live_windows";

constexpr std::size_t kNumbers = 4;  // of a row of a table

/// The patches of a token, which are stored row by row of it, in the order of its windows.
constexpr std::array<std::size_t, Config::kArea * Config::kArea> kOrder{
    0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15};

void order_by_window(std::span<std::int32_t> table) {
  std::array<std::int32_t, kOrder.size() * kNumbers> before;
  for (; !table.empty(); table = table.subspan(before.size())) {
    std::ranges::copy(table.first(before.size()), before.begin());
    auto next = table.begin();
    for (const std::size_t patch : kOrder) {
      next = std::copy_n(before.data() + patch * kNumbers, kNumbers, next);
    }
  }
}

}  // namespace

std::vector<BufferDecl> WindowInputs::declare(const Config&, const GraphCapacity& capacity) {
  return {
      {kWindowSeqlens, DType::kI32, {capacity.tokens * Config::kArea + 1}, PadRule::kRepeatLast},
      {kMergedSeqlens, DType::kI32, {capacity.seqs + 1}, PadRule::kRepeatLast},
      {kLive, DType::kI32, {1}}};
}

void WindowInputs::fill(const Config& config, std::span<const common::GridRun> runs,
                        const common::PatchTables& rows, InputWriter& writer) {
  const std::int64_t table_side = config.tower.view.grid();
  order_by_window(rows.positions);
  order_by_window(rows.sources);
  for (std::size_t i = 0; i < rows.positions.size(); i += kNumbers) {
    for (std::size_t axis = 0; axis < 2; ++axis) {  // y of height, x of width
      std::int32_t& place = rows.positions[i + axis];
      place = narrow(place * table_side / rows.positions[i + 2 + axis]);
    }
    rows.positions[i + 2] = rows.positions[i + 3] = narrow(table_side);
  }
  const std::int64_t windows = std::ssize(rows.positions) / std::int64_t{kNumbers} / Config::kArea;
  auto* window = writer.claim(kWindowSeqlens, windows + 1).as<std::int32_t>();
  for (std::int64_t i = 0; i <= windows; ++i) window[i] = narrow(i * Config::kArea);
  auto* merged = writer.claim(kMergedSeqlens, std::ssize(runs) + 1).as<std::int32_t>();
  *merged = 0;
  for (const common::GridRun& view : runs) {
    merged[1] = merged[0] + narrow(view.patches / Config::kArea);
    ++merged;
  }
  *writer.claim(kLive, 1).as<std::int32_t>() = narrow(windows);
}

WindowInputs WindowInputs::of(const NamedTensors& in) {
  return {.cu_windows = in[kWindowSeqlens],
          .cu_merged = in[kMergedSeqlens],
          .windows = {in[kLive].as<std::int32_t>()}};
}

}  // namespace fovea::minicpmv4_6
