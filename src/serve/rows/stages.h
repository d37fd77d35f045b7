#pragma once

#include <memory>
#include <span>

#include "core/json_writer.h"
#include "fovea/embedding.h"

namespace fovea::serve {

/// Sums over items, whose stages overlap.
[[nodiscard]] StageTimes total(std::span<const std::shared_ptr<const Embedding>> items) noexcept;

/// {"read": .., ...} in milliseconds.
[[nodiscard]] JsonObject stages_json(const StageTimes& times);

}  // namespace fovea::serve
