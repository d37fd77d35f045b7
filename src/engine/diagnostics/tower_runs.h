#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/engine_impl.h"
#include "fovea/diagnostics.h"
#include "fovea/engine.h"

namespace fovea {

/// Images or videos of random pixels, prepared once, that run through the tower of an engine again
/// and again; their rows stay on the device.
class TowerRuns {
 public:
  /// Returns when the engine has captured what it captures in the background.
  /// @param who names the caller in errors.
  /// @throws Error(kInvalidArgument) as time_tower.
  TowerRuns(Engine& engine, const TowerLoad& load, std::string_view who);

  [[nodiscard]] std::int64_t num_items() const noexcept { return std::ssize(items_); }
  /// Of all items together.
  [[nodiscard]] std::int64_t patches() const noexcept;
  [[nodiscard]] std::int64_t rows() const noexcept;
  [[nodiscard]] double flops() const;
  /// The largest of the graphs that they are packed into; 0 if all run eagerly.
  [[nodiscard]] std::int64_t largest_budget() const;

  /// Runs all items once. @return milliseconds.
  double run_ms(bool eager);
  /// Items that the engine has replayed graphs for so far.
  [[nodiscard]] std::int64_t num_replayed() const;

 private:
  Engine::Impl& impl_;
  std::vector<PreparedItem> storage_;
  std::vector<TowerItem> items_;  // whose rows stay on the device
  Spares<GroupSession>::Loan session_;
};

}  // namespace fovea
