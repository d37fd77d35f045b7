#pragma once

#include <optional>

#include "fovea/diagnostics.h"

namespace fovea {

/// Mean power from readings of an energy counter that moves in steps, every 20 to 100 ms. Only
/// whole steps count: from the first move to the last, so that what was taken before the first
/// reading since the move before has no part in it.
class PowerMeter {
 public:
  /// @param joules that the counter shows at `seconds`. Moments ascend.
  void add(double seconds, double joules) noexcept;

  /// The uncertainty is that of one step, the longest. Absent if that is more than a tenth: the
  /// counter has moved too few times.
  [[nodiscard]] std::optional<PowerReading> reading() const noexcept;

 private:
  struct Reading {
    double seconds;
    double joules;
  };

  std::optional<Reading> before_;  // what the counter showed until it first moved
  std::optional<Reading> first_;   // move
  Reading last_{};                 // move
  double longest_s_ = 0;           // between two moves
};

}  // namespace fovea
