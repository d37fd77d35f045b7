#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fovea/options.h"
#include "fovea/tower/graph/graph_sizes.h"
#include "fovea/tower/models/encoder_graph_model.h"

namespace fovea {

/// Smallest and largest token budget worth capturing.
struct BudgetRange {
  std::int64_t min = 0;
  std::int64_t max = 0;
};

/// The range of a model behind a consumer that takes `max_tokens` tokens in a step.
[[nodiscard]] BudgetRange budget_range(const GraphSpec& spec, std::int64_t max_tokens);

/// The request that the sizes of the graphs follow from.
struct GraphConfigRequest {
  GraphOptions user;
  bool video_allowed = true;  ///< false: no prompt may hold a video, whatever the user wrote
  LogSink* log = nullptr;
};

/// Checks that hold whether graphs are on or off.
/// @throws Error(kInvalidArgument) with the texts of the source.
/// Source: docs/reference/encoder_graphs.md, "Validation".
void validate_graph_options(const GraphOptions& user);

/// Resolves budgets, items and frames. @param range of the model; asked only if something has to be
/// inferred, or if one list of budgets is to serve several paths.
/// @throws Error(kInvalidArgument) as above.
/// Source: docs/reference/encoder_graphs.md, "Budgets and items".
[[nodiscard]] GraphConfig resolve_graph_config(const GraphSpec& spec,
                                               const std::function<BudgetRange()>& range,
                                               const GraphConfigRequest& request);

/// Limits for a manager without graphs: batches are cut at `max_tokens` tokens per path so that the
/// memory of an eager run stays bounded; nothing else limits them.
[[nodiscard]] GraphConfig eager_config(const GraphSpec& spec, std::int64_t max_tokens);

/// The sizes that batches of a model are cut by: resolve_graph_config with the range of the model,
/// or eager_config if the user wants no graphs.
/// @throws as resolve_graph_config and validate_graph_options.
[[nodiscard]] GraphConfig graph_config_of(const EncoderGraphModel& model,
                                          std::int64_t max_num_batched_tokens,
                                          const GraphConfigRequest& request);

/// Whether there are graphs for items of this kind; others run eagerly.
[[nodiscard]] bool serves(const GraphSpec& spec, const GraphConfig& config, Modality modality);

/// Number of graphs that the configuration captures: non-zero budgets of all paths.
[[nodiscard]] std::int64_t count_graphs(const GraphConfig& config);

}  // namespace fovea
