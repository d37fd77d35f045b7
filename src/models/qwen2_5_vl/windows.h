#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/common/grid/inputs.h"
#include "models/qwen2_5_vl/config.h"

namespace fovea::qwen2_5_vl {

/// Tokens of a batch in the order of their windows. A frame is cut into squares of `side` x `side`
/// tokens, row by row; those at the right and lower edge are smaller. A window never spans frames.
/// Source: docs/reference/qwen2_5_vl.md, "Windows".
struct WindowOrder {
  std::vector<std::int32_t> tokens;         ///< at each place: the token in the order of the batch
  std::vector<std::int32_t> cu_seqlens{0};  ///< patches before each window, and all of them

  /// Appends the windows of one more item, or of some of its frames.
  /// @param grid in patches, as ItemPlan::grid, of these frames.
  void append(const std::array<std::int64_t, 3>& grid, const common::GridGeometry& geometry,
              std::int64_t side);
};

/// The inputs of the tower beside common::GridInputs, whose rows it expects in the order of
/// windows.
struct WindowInputs {
  ConstTensorView cu_seqlens;  ///< [windows + 1] i32, in patches
  ConstTensorView places;      ///< [tokens] i32: place of each token in the order of windows
  LiveRows windows;

  // As common::PlainGridModel says.
  [[nodiscard]] static std::vector<BufferDecl> declare(const Config& config,
                                                       const GraphCapacity& capacity);
  /// Puts `rows` in the order of windows, too. @throws Error(kUnavailable) if a buffer holds less.
  static void fill(const Config& config, std::span<const common::GridRun> runs,
                   const common::PatchTables& rows, InputWriter& writer);
  [[nodiscard]] static WindowInputs of(const NamedTensors& in);
};

}  // namespace fovea::qwen2_5_vl
