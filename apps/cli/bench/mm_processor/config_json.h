#pragma once

#include "bench/mm_processor/mm_flags.h"
#include "core/json_writer.h"

namespace fovea::cli {

/// All that repeats a run of `fovea bench mm-processor`: the settings of the workload, and under
/// "engine" those of the engine, as the user gave them or by default, members of "engine"
/// under the names of options. What was inferred, budgets for one, is in the statistics of the run.
[[nodiscard]] JsonObject config_json(const MmFlags& flags);

}  // namespace fovea::cli
