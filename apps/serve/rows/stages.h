#pragma once

#include <array>
#include <memory>
#include <span>

#include "core/json_writer.h"
#include "fovea/embedding.h"

namespace fovea::serve {

/// A stage of the way from file to rows, for replies, metrics and profiles.
struct Stage {
  const char* name;
  double StageTimes::*ms;
};

inline constexpr std::array<Stage, 6> kStages{{{"read", &StageTimes::read_ms},
                                               {"decode", &StageTimes::decode_ms},
                                               {"resize", &StageTimes::resize_ms},
                                               {"pack", &StageTimes::pack_ms},
                                               {"encode", &StageTimes::encode_ms},
                                               {"output", &StageTimes::output_ms}}};

/// Sums over items, whose stages overlap.
[[nodiscard]] StageTimes total(std::span<const std::shared_ptr<const Embedding>> items) noexcept;

/// {"read": .., ...} in milliseconds.
[[nodiscard]] JsonObject stages_json(const StageTimes& times);

}  // namespace fovea::serve
