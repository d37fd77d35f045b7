// From the user's four fields and the model's range to the sizes of all graphs.
#include "graph/graph_config.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/check.h"
#include "fovea/log.h"
#include "graph/budgets.h"

namespace fovea {

namespace {

constexpr std::int64_t kManyGraphs = 64;

void validate_spec(const GraphSpec& spec) {
  FOVEA_CHECK(!spec.paths.empty() && spec.paths.size() <= kMaxPaths, kInvalidArgument,
              "a model needs at least one path and at most ", kMaxPaths, ", got ",
              spec.paths.size());
  for (const PathSpec& path : spec.paths) {
    FOVEA_CHECK(path.unit >= 1, kInvalidArgument, "tokens of path \"", path.name,
                "\" come in multiples of at least 1, got ", path.unit);
  }
}

void validate_budgets(const std::string& name, std::span<const std::int64_t> budgets) {
  for (const std::int64_t budget : budgets) {
    FOVEA_CHECK(budget > 0, kInvalidArgument, name, " must be positive, got ", list_text(budgets));
    FOVEA_CHECK(budget <= kMaxTokenBudget, kInvalidArgument, name, " must be at most ",
                kMaxTokenBudget, ", got ", list_text(budgets));
  }
}

/// The paths of a model, for messages.
std::string names_of(const std::vector<PathSpec>& paths) {
  std::string names;
  for (const PathSpec& path : paths) names += cat(names.empty() ? "\"" : ", \"", path.name, '"');
  return names;
}

/// The user's options with a list for the only path of a model in the place of the common one.
GraphOptions checked_options(const GraphSpec& spec, const GraphOptions& user) {
  GraphOptions options = user;
  for (const auto& [name, budgets] : user.encoder_cudagraph_path_token_budgets) {
    const auto path = std::ranges::find(spec.paths, name, &PathSpec::name);
    FOVEA_CHECK(path != spec.paths.end(), kInvalidArgument,
                "encoder_cudagraph_token_budgets: the paths of this model are ",
                names_of(spec.paths), ", got \"", name, '"');
    if (spec.paths.size() == 1) options.encoder_cudagraph_token_budgets = budgets;
  }
  if (spec.paths.size() == 1) options.encoder_cudagraph_path_token_budgets.clear();
  return options;
}

BudgetRange checked_range(const std::function<BudgetRange()>& range) {
  const BudgetRange budgets = range();
  FOVEA_CHECK(budgets.min > 0 && budgets.max > 0, kInvalidArgument, "the model's budget range is [",
              budgets.min, ", ", budgets.max, "]. Both must be positive");
  FOVEA_CHECK(budgets.min <= budgets.max, kInvalidArgument,
              "the model's budget range is empty: min_budget=", budgets.min,
              " > max_budget=", budgets.max);
  return budgets;
}

/// Every item of a capture needs at least one token, so a replay holds no more items than the
/// smallest budget has tokens.
std::int64_t infer_max_items(const BudgetRange& range, std::int64_t smallest, LogSink* log) {
  const std::int64_t wanted = range.max / range.min;
  if (wanted > smallest) {  // usual with inferred budgets: worth a line, not a warning
    log_to(log, LogLevel::kInfo,
           cat("encoder_graphs.max_items_lowered from=", wanted, " to=", smallest,
               " because=smallest_budget"));
  }
  const std::int64_t max_items = std::min(wanted, smallest);
  if (max_items == 1) {
    log_to(log, LogLevel::kWarning,
           cat("encoder_graphs.no_packing max_items=1 min_budget=", range.min,
               " max_budget=", range.max));
  }
  return max_items;
}

void resolve_budgets_and_items(const GraphOptions& user, const std::function<BudgetRange()>& range,
                               const GraphConfigRequest& request, GraphConfig& config) {
  const std::int64_t items = user.encoder_cudagraph_max_vision_items_per_batch;
  config.token_budgets = user.encoder_cudagraph_token_budgets;
  sort_unique(config.token_budgets);
  config.max_items = items;
  if (!config.token_budgets.empty() && items > 0) {
    const std::int64_t smallest = config.token_budgets.front();
    FOVEA_CHECK(items <= smallest, kInvalidArgument,
                "encoder_cudagraph_max_vision_items_per_batch (", items,
                ") must be <= smallest token budget (", smallest, "): ", smallest, " / ", items,
                " = ", smallest / items, " tokens per item");
    return;
  }
  const BudgetRange model = checked_range(range);
  if (config.token_budgets.empty()) {
    FOVEA_CHECK(items <= model.max, kInvalidArgument,
                "encoder_cudagraph_max_vision_items_per_batch (", items,
                ") must be <= the model's largest budget (", model.max, ")");
    FOVEA_CHECK(model.max <= kMaxTokenBudget, kInvalidArgument,
                "the model's budget range must end at ", kMaxTokenBudget,
                " at most: max_num_batched_tokens makes it end at ", model.max);
    config.token_budgets = generate_budgets(std::max(model.min, items), model.max);
  }
  if (items == 0) {
    config.max_items = infer_max_items(model, config.token_budgets.front(), request.log);
  }
}

std::int64_t resolve_frames(const GraphSpec& spec, const GraphConfigRequest& request,
                            std::int64_t max_items) {
  if (!request.video_allowed) return 0;
  if (request.user.encoder_cudagraph_max_frames_per_batch) {
    return *request.user.encoder_cudagraph_max_frames_per_batch;
  }
  return max_items * spec.max_frames_per_video;
}

/// The budgets of every path. @param user checked_options. @param config without them.
std::vector<std::vector<std::int64_t>> resolve_paths(const GraphSpec& spec,
                                                     const std::function<BudgetRange()>& range,
                                                     const GraphOptions& user,
                                                     const GraphConfig& config) {
  PathBudgetRules rules{.user_budgets = !user.encoder_cudagraph_token_budgets.empty(),
                        .max_items = config.max_items};
  if (rules.user_budgets && spec.paths.size() > 1) rules.inferred_top = checked_range(range).max;
  std::vector<std::vector<std::int64_t>> lists;
  for (const PathSpec& path : spec.paths) {
    const auto given = user.encoder_cudagraph_path_token_budgets.find(path.name);
    lists.push_back(given == user.encoder_cudagraph_path_token_budgets.end()
                        ? path_budgets(path, config.token_budgets, rules)
                        : given_path_budgets(path, given->second, config.max_items));
  }
  return lists;
}

}  // namespace

BudgetRange budget_range(const GraphSpec& spec, std::int64_t max_tokens) {
  const std::int64_t top = std::min(max_tokens, spec.max_token_budget.value_or(max_tokens));
  return {std::min(spec.min_token_budget, top), top};
}

void validate_graph_options(const GraphOptions& user) {
  validate_budgets("encoder_cudagraph_token_budgets", user.encoder_cudagraph_token_budgets);
  for (const auto& [path, budgets] : user.encoder_cudagraph_path_token_budgets) {
    const std::string name = cat("encoder_cudagraph_token_budgets of path \"", path, '"');
    FOVEA_CHECK(!budgets.empty(), kInvalidArgument, name, ": expected at least one");
    validate_budgets(name, budgets);
  }
  FOVEA_CHECK(user.encoder_cudagraph_token_budgets.empty() ||
                  user.encoder_cudagraph_path_token_budgets.empty(),
              kInvalidArgument,
              "encoder_cudagraph_token_budgets: expected one list or a list per path, got both");
  if (!user.cudagraph_mm_encoder) return;
  FOVEA_CHECK(user.encoder_cudagraph_max_vision_items_per_batch >= 0, kInvalidArgument,
              "encoder_cudagraph_max_vision_items_per_batch must be non-negative (0 = auto-infer), "
              "got ",
              user.encoder_cudagraph_max_vision_items_per_batch);
  const std::optional<std::int64_t> frames = user.encoder_cudagraph_max_frames_per_batch;
  FOVEA_CHECK(!frames || *frames >= 0, kInvalidArgument,
              "encoder_cudagraph_max_frames_per_batch must be non-negative (None = auto-infer), "
              "got ",
              *frames);
}

GraphConfig resolve_graph_config(const GraphSpec& spec, const std::function<BudgetRange()>& range,
                                 const GraphConfigRequest& request) {
  validate_graph_options(request.user);
  validate_spec(spec);
  const GraphOptions user = checked_options(spec, request.user);
  GraphConfig config;
  resolve_budgets_and_items(user, range, request, config);
  config.max_frames = resolve_frames(spec, request, config.max_items);
  config.max_seqs = std::max(config.max_items, config.max_frames);
  config.path_budgets = resolve_paths(spec, range, user, config);
  const std::int64_t graphs = count_graphs(config);
  if (graphs > kManyGraphs) {
    log_to(request.log, LogLevel::kWarning,
           cat("encoder_graphs.many_graphs count=", graphs, " advised_max=", kManyGraphs));
  }
  return config;
}

GraphConfig eager_config(const GraphSpec& spec, std::int64_t max_tokens) {
  constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
  GraphConfig config;
  config.max_items = kUnlimited;
  config.max_frames = kUnlimited;
  config.max_seqs = kUnlimited;
  config.path_budgets.assign(spec.paths.size(), {std::max<std::int64_t>(max_tokens, 1)});
  return config;
}

GraphConfig graph_config_of(const EncoderGraphModel& model, std::int64_t max_num_batched_tokens,
                            const GraphConfigRequest& request) {
  if (!request.user.cudagraph_mm_encoder) {
    validate_graph_options(request.user);
    return eager_config(model.graph_spec(), max_num_batched_tokens);
  }
  return resolve_graph_config(
      model.graph_spec(), [&] { return budget_range(model.graph_spec(), max_num_batched_tokens); },
      request);
}

bool serves(const GraphSpec& spec, const GraphConfig& config, Modality modality) {
  if (modality == Modality::kVideo && config.max_frames == 0) return false;
  return std::ranges::find(spec.modalities, modality) != spec.modalities.end();
}

std::int64_t count_graphs(const GraphConfig& config) {
  std::int64_t budgets = 0;
  for (const std::vector<std::int64_t>& list : config.path_budgets) {
    budgets += std::ranges::count_if(list, [](std::int64_t budget) { return budget > 0; });
  }
  return budgets;
}

}  // namespace fovea
