// The items that measurements are made with, and the costs that follow.
#include "graph/capture/calibration.h"

#include <algorithm>
#include <limits>

#include "graph/capture/image_search.h"

namespace fovea {

namespace {

/// Eager must win by this factor: best times of runs that take turns differ by less, and on a tie a
/// replay is better, which costs the processor one launch instead of hundreds.
constexpr double kMargin = 0.99;
/// Most tokens of an image of a load, where there is a choice. Attention costs an image the same
/// wherever it runs, so all loads must have the same share of it: with larger images in larger
/// graphs these seem dearer per token than they are. On an H100, Qwen3-VL took 21.8 ms for 2048
/// tokens of images of 1024 and 5.0 for one image of 512, so that four replays of 512 seemed
/// cheaper; of images of 64 tokens they took 17.2 ms and one replay of 2048 15.5.
constexpr std::int64_t kTokensOfImage = 256;

std::int64_t tokens_of(const ItemPlan& plan, PathId path) {
  return plan.spec.path_tokens[static_cast<std::size_t>(path)];
}

/// Times of `graph` on items that fill `capacity`, which is at most the graph's.
std::optional<GraphTimes::Load> time_load(const GraphTimer& timer, const BudgetGraph& graph,
                                          const GraphCapacity& capacity) {
  // The best of several short runs, of which other work of the machine may hold up some; of long
  // ones few, beside which the noise is small: batches are waiting.
  constexpr int kMostRepetitions = 10;
  constexpr double kEnoughMs = 80;
  const PathId path = graph.key().path;
  const std::vector<PreparedItem> blank = filling_items(timer.model, path, capacity);
  if (blank.empty()) return std::nullopt;
  std::vector<ItemPart> parts;
  parts.reserve(blank.size());
  for (const PreparedItem& item : blank) parts.push_back(ItemPart::whole(item, path));
  InputScratch scratch;
  const auto time = [&](auto&& run) {
    const double start = timer.now_ms();
    run();
    timer.lane.synchronize();
    return timer.now_ms() - start;
  };
  const auto replay = [&] { (void)graph.replay(timer.lane, timer.memory, parts, scratch); };
  const auto run_eagerly = [&] {
    timer.eager.forget_sizes();  // batches of other sizes have come before a real one, too
    (void)timer.eager.run(path, parts, scratch);
  };
  (void)time(replay);  // warms up
  (void)time(run_eagerly);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  GraphTimes::Load times{.tokens = tokens_of(blank.front().plan, path) * std::ssize(blank),
                         .replay_ms = kNever,
                         .eager_ms = kNever};
  double all = 0;
  for (int repetition = 0; repetition < kMostRepetitions && all < kEnoughMs; ++repetition) {
    // In turns: clocks that drift meet both alike.
    const double replay_ms = time(replay);
    const double eager_ms = time(run_eagerly);
    times.replay_ms = std::min(times.replay_ms, replay_ms);
    times.eager_ms = std::min(times.eager_ms, eager_ms);
    all += replay_ms + eager_ms;
  }
  return times;
}

/// The cost of the better way to run each of the loads.
LoadCost cost_of(const GraphTimes& times) {
  const GraphTimes::Load& low = times.low;
  return {.low = {low.tokens, std::min(low.replay_ms, low.eager_ms)},
          .high = {times.tokens, std::min(times.replay_ms, times.eager_ms)}};
}

}  // namespace

std::vector<PreparedItem> filling_items(const EncoderGraphModel& model, PathId path,
                                        const GraphCapacity& capacity) {
  const std::int64_t typical = (capacity.tokens + kTokensOfImage - 1) / kTokensOfImage;
  const std::int64_t images = std::min(capacity.items, typical);
  std::optional<ItemPlan> plan = fullest_image(model, path, capacity.tokens / images);
  if (!plan) plan = fullest_image(model, path, capacity.tokens);
  if (!plan) return {};
  const std::int64_t count = std::min(capacity.items, capacity.tokens / tokens_of(*plan, path));
  const PreparedItem blank{.plan = *plan, .pixels = std::vector<std::uint8_t>(plan->pixel_bytes)};
  return std::vector<PreparedItem>(static_cast<std::size_t>(count), blank);
}

std::optional<GraphTimes> time_graph(const GraphTimer& timer, const BudgetGraph& graph) {
  const std::optional<GraphTimes::Load> full = time_load(timer, graph, graph.capacity());
  if (!full) return std::nullopt;
  GraphCapacity low = graph.smallest();
  if (low == graph.capacity()) low.tokens /= 2;
  const auto of_low = low.tokens > 0 ? time_load(timer, graph, low) : std::nullopt;
  return GraphTimes{.key = graph.key(),
                    .replay_ms = full->replay_ms,
                    .eager_ms = full->eager_ms,
                    .tokens = full->tokens,
                    .low = of_low.value_or(GraphTimes::Load{}),
                    .capacity = graph.capacity()};
}

bool eager_is_faster(const GraphTimes& times, std::int64_t load) noexcept {
  const LoadCost replay{.low = {times.low.tokens, times.low.replay_ms},
                        .high = {times.tokens, times.replay_ms}};
  const LoadCost eager{.low = {times.low.tokens, times.low.eager_ms},
                       .high = {times.tokens, times.eager_ms}};
  return eager.at(load) < kMargin * replay.at(load);
}

PackingCosts measured_costs(std::span<const std::vector<std::int64_t>> path_budgets,
                            std::span<const GraphTimes> times) {
  PackingCosts costs = PackingCosts::from_budgets(path_budgets);
  if (times.empty()) return costs;
  double replay_ms = 0;
  double eager_ms = 0;
  double budgets = 0;
  double tokens = 0;
  for (const GraphTimes& graph : times) {
    replay_ms += graph.replay_ms;
    eager_ms += graph.eager_ms;
    budgets += static_cast<double>(graph.key.budget);
    tokens += static_cast<double>(graph.tokens);
  }
  for (std::size_t path = 0; path < path_budgets.size(); ++path) {
    PathCost& costs_of_path = costs.paths[path];
    costs_of_path.eager_per_token = eager_ms / tokens;
    for (std::size_t i = 0; i < path_budgets[path].size(); ++i) {
      LoadCost& cost = costs_of_path.replay[i];
      const GraphKey key{.path = static_cast<PathId>(path), .budget = path_budgets[path][i]};
      const auto measured = std::ranges::find(times, key, &GraphTimes::key);
      if (measured != times.end()) {
        cost = cost_of(*measured);
      } else {
        cost.high.cost *= replay_ms / budgets;
      }
    }
  }
  return costs;
}

}  // namespace fovea
