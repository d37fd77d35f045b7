#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/engine_impl.h"
#include "fovea/engine.h"

namespace fovea {

/// Equal images of random pixels, prepared once, that run through the tower of an engine again and
/// again; their rows stay on the device.
class TowerRuns {
 public:
  /// Returns when the engine has captured what it captures in the background.
  /// @param who names the caller in errors.
  /// @throws Error(kInvalidArgument) as time_tower.
  TowerRuns(Engine& engine, std::int64_t patches, std::int64_t count, std::string_view who);

  /// Of all images together.
  [[nodiscard]] std::int64_t patches() const noexcept { return patches_; }
  [[nodiscard]] std::int64_t rows() const noexcept;
  [[nodiscard]] double flops() const;
  /// The largest of the graphs that they are packed into.
  [[nodiscard]] std::int64_t largest_budget() const;

  /// Runs all images once. @return milliseconds.
  double run_ms(bool eager);
  /// Items that the engine has replayed graphs for so far.
  [[nodiscard]] std::int64_t num_replayed() const;

 private:
  Engine::Impl& impl_;
  std::int64_t patches_;
  std::vector<PreparedItem> storage_;
  std::vector<const PreparedItem*> items_;
  Spares<GroupSession>::Loan session_;
};

}  // namespace fovea
