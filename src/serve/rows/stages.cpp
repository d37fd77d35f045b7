#include "serve/rows/stages.h"

namespace fovea::serve {

StageTimes total(std::span<const std::shared_ptr<const Embedding>> items) noexcept {
  StageTimes sum;
  for (const std::shared_ptr<const Embedding>& item : items) sum += item->times;
  return sum;
}

JsonObject stages_json(const StageTimes& times) {
  JsonObject json;
  for (const Stage& stage : kStages) json.set(stage.name, times.*stage.ms);
  return json;
}

}  // namespace fovea::serve
