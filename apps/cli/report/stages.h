#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/embedding.h"
#include "report/svg_chart.h"

namespace fovea::cli {

/// A stage of the way from file to rows, for tables, JSON and charts.
struct Stage {
  std::string_view name;
  double StageTimes::*ms;
};

inline constexpr std::array<Stage, 6> kStages{{{"read", &StageTimes::read_ms},
                                               {"decode", &StageTimes::decode_ms},
                                               {"resize", &StageTimes::resize_ms},
                                               {"pack", &StageTimes::pack_ms},
                                               {"encode", &StageTimes::encode_ms},
                                               {"output", &StageTimes::output_ms}}};

/// Sum over all stages.
[[nodiscard]] double total_ms(const StageTimes& times);

/// Chart of one bar per item, one colour per stage. Of more than 60 items the slowest 60 are shown.
[[nodiscard]] BarChart stage_chart(const std::vector<Embedding>& items);

}  // namespace fovea::cli
