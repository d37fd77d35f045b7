// Buffers of windows, and the order of patches.
#include "models/minicpmv4_6/inputs.h"

#include <algorithm>
#include <array>

namespace fovea::minicpmv4_6 {

namespace {

constexpr const char* kWindowSeqlens = "cu_windows";
constexpr const char* kMergedSeqlens = "cu_merged";
constexpr const char* kLive = "live_windows";

constexpr std::int64_t kPatches = Config::kArea * Config::kArea;  ///< of a token
constexpr std::size_t kNumbers = 4;                               ///< of a row of a table

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

/// Puts the patches of every token, which are stored row by row of it, in the order of its windows.
void order_by_window(std::span<std::int32_t> table) {
  constexpr std::int64_t kSide = Config::kWindow * Config::kWindow;  // patches of a token
  constexpr auto kValues = static_cast<std::size_t>(kPatches) * kNumbers;
  for (std::size_t token = 0; token < table.size(); token += kValues) {
    std::array<std::int32_t, kValues> before;
    std::copy_n(table.begin() + static_cast<std::ptrdiff_t>(token), kValues, before.begin());
    for (std::int64_t k = 0; k < kPatches; ++k) {
      const std::int64_t window = k / Config::kArea;
      const std::int64_t patch = k % Config::kArea;
      const auto place = [](std::int64_t outer, std::int64_t inner) {
        return outer * Config::kWindow + inner;
      };
      const std::int64_t y = place(window / Config::kWindow, patch / Config::kWindow);
      const std::int64_t x = place(window % Config::kWindow, patch % Config::kWindow);
      std::copy_n(before.begin() + (y * kSide + x) * std::int64_t{kNumbers}, kNumbers,
                  table.begin() + static_cast<std::ptrdiff_t>(token) + k * std::int64_t{kNumbers});
    }
  }
}

}  // namespace

std::vector<BufferDecl> WindowInputs::declare(const GraphCapacity& capacity, std::int64_t views) {
  return {
      {kWindowSeqlens, DType::kI32, {capacity.tokens * Config::kArea + 1}, PadRule::kRepeatLast},
      {kMergedSeqlens, DType::kI32, {views + 1}, PadRule::kRepeatLast},
      {kLive, DType::kI32, {1}}};
}

void WindowInputs::fill(std::int64_t table_side, std::span<const common::GridRun> views,
                        const common::PatchTables& rows, InputWriter& writer) {
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
  auto* merged = writer.claim(kMergedSeqlens, std::ssize(views) + 1).as<std::int32_t>();
  *merged = 0;
  for (const common::GridRun& view : views) {
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
