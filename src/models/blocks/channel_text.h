#pragma once

#include <array>
#include <string>

#include "core/check.h"

namespace fovea::blocks {

/// Values of the three channels for log lines: "0.5,0.5,0.5".
[[nodiscard]] inline std::string channel_text(const std::array<float, 3>& values) {
  return cat(values[0], ",", values[1], ",", values[2]);
}

}  // namespace fovea::blocks
