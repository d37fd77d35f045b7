#include "engine/diagnostics/power_meter.h"

#include <algorithm>

namespace fovea {

void PowerMeter::add(double seconds, double joules) noexcept {
  if (!before_) before_ = {seconds, joules};
  const double known = first_ ? last_.joules : before_->joules;
  if (joules == known) return;
  if (first_) longest_s_ = std::max(longest_s_, seconds - last_.seconds);
  last_ = {seconds, joules};
  if (!first_) first_ = last_;
}

std::optional<PowerReading> PowerMeter::reading() const noexcept {
  constexpr double kMostUncertain = 0.1;
  if (!first_ || last_.seconds <= first_->seconds) return std::nullopt;
  const double seconds = last_.seconds - first_->seconds;
  const double uncertainty = longest_s_ / seconds;
  if (uncertainty > kMostUncertain) return std::nullopt;
  return PowerReading{.watts = (last_.joules - first_->joules) / seconds,
                      .uncertainty = uncertainty};
}

}  // namespace fovea
