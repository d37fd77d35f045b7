#pragma once

#include <vector>

#include "fovea/embedding.h"
#include "report/svg_chart.h"

namespace fovea::cli {

/// Sum over all stages.
[[nodiscard]] double total_ms(const StageTimes& times);

/// Chart of one bar per item, one colour per stage. Of more than 60 items the slowest 60 are shown.
[[nodiscard]] BarChart stage_chart(const std::vector<Embedding>& items);

}  // namespace fovea::cli
