// Validation and resolution of the configuration: encoder graph specification, section 2.
#include "graph/graph_config.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <numeric>

#include "core/check.h"
#include "fovea/tower/graph/graph_manager.h"
#include "graph/budgets.h"
#include "graph/capture/graph_set.h"
#include "graph/recording_log.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using test::expect_error;
using test::RecordingLog;
using List = std::vector<std::int64_t>;

struct Request {
  List budgets = {};
  std::int64_t items = 0;
  std::optional<std::int64_t> frames = {};
  BudgetRange range = {64, 16384};
  GraphSpec spec = {};
  bool video_allowed = true;
  LogSink* log = nullptr;
};

GraphConfigRequest to_config_request(const Request& r) {
  return {.user = {.encoder_cudagraph_token_budgets = r.budgets,
                   .encoder_cudagraph_max_vision_items_per_batch = r.items,
                   .encoder_cudagraph_max_frames_per_batch = r.frames},
          .video_allowed = r.video_allowed,
          .log = r.log};
}

GraphConfig resolve(const Request& r) {
  return resolve_graph_config(
      r.spec, [&] { return r.range; }, to_config_request(r));
}

TEST(GraphConfig, BudgetsAreSorted) {
  const GraphConfig config = resolve({.budgets = {8192, 2048, 4096}});
  EXPECT_EQ(config.token_budgets, (List{2048, 4096, 8192}));
  EXPECT_EQ(find_budget(3000, config.token_budgets), 4096);
}

TEST(GraphConfig, DuplicateBudgetsAreRemoved) {
  EXPECT_EQ(resolve({.budgets = {64, 32, 64}}).token_budgets, (List{32, 64}));
}

TEST(GraphConfig, BudgetsMustBePositiveEvenWhenGraphsAreOff) {
  for (const List& budgets : {List{0, 128}, List{-1, 64}}) {
    GraphOptions user;
    user.cudagraph_mm_encoder = false;  // checked even when graphs are off
    user.encoder_cudagraph_token_budgets = budgets;
    expect_error(ErrorCode::kInvalidArgument, "must be positive",
                 [&] { validate_graph_options(user); });
  }
}

TEST(GraphConfig, BudgetsBeyondWhatKernelsCountAreRefused) {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_NO_THROW((void)resolve({.budgets = {64, kMaxTokenBudget}, .items = 1}));
  expect_error(ErrorCode::kInvalidArgument,
               "encoder_cudagraph_token_budgets must be at most 16777216, got [64, " + cat(huge),
               [&] {
                 (void)resolve({.budgets = {64, huge}, .items = 1});
               });
  expect_error(ErrorCode::kInvalidArgument, "must end at 16777216 at most", [&] {
    (void)resolve({.range = {64, huge}});
  });
}

TEST(GraphConfig, ItemsAndFramesMustNotBeNegative) {
  expect_error(ErrorCode::kInvalidArgument,
               "encoder_cudagraph_max_vision_items_per_batch must be non-negative (0 = auto-infer)",
               [] { (void)resolve({.items = -1}); });
  expect_error(ErrorCode::kInvalidArgument,
               "encoder_cudagraph_max_frames_per_batch must be non-negative (None = auto-infer)",
               [] { (void)resolve({.frames = -1}); });
  GraphOptions off;
  off.cudagraph_mm_encoder = false;
  off.encoder_cudagraph_max_vision_items_per_batch = -1;
  EXPECT_NO_THROW(validate_graph_options(off));
}

TEST(GraphConfig, GivenItemsMustFitTheSmallestGivenBudget) {
  expect_error(ErrorCode::kInvalidArgument, "must be <= smallest token budget (64): 64 / 256 = 0",
               [] { (void)resolve({.budgets = {64}, .items = 256}); });
}

TEST(GraphConfig, ItemsMayEqualTheSmallestBudget) {
  EXPECT_EQ(resolve({.budgets = {64, 128}, .items = 64}).max_items, 64);
}

TEST(GraphConfig, GivenBudgetsAndItemsNeverAskTheModel) {
  const Request r{.budgets = {64, 128}, .items = 32};
  const GraphConfig config = resolve_graph_config(
      r.spec,
      []() -> BudgetRange {
        ADD_FAILURE() << "the model's range was asked for";
        return {};
      },
      to_config_request(r));
  EXPECT_EQ(config.max_items, 32);
  EXPECT_EQ(config.token_budgets, (List{64, 128}));
}

TEST(GraphConfig, BudgetsAreInferredFromTheItems) {
  const GraphConfig config = resolve({.items = 128});
  EXPECT_EQ(config.token_budgets, (List{128, 256, 512, 1024, 2048, 4096, 8192, 16384}));
  EXPECT_EQ(config.max_items, 128);
}

TEST(GraphConfig, FewItemsKeepTheLowestBudgetOfTheModel) {
  const GraphConfig config = resolve({.items = 2, .range = {4, 128}});
  EXPECT_EQ(config.max_items, 2);
  EXPECT_EQ(config.token_budgets, (List{4, 8, 16, 32, 64, 128}));
}

TEST(GraphConfig, ItemsAreInferredFromTheBudgets) {
  EXPECT_EQ(resolve({.budgets = {32, 64}}).max_items, 32);
}

TEST(GraphConfig, BudgetsAndItemsAreInferredFromTheModel) {
  const GraphConfig large = resolve({});
  EXPECT_EQ(large.max_items, 64);
  EXPECT_EQ(large.token_budgets.size(), 9u);
  const GraphConfig small = resolve({.range = {4, 128}});
  EXPECT_EQ(small.max_items, 4);
  EXPECT_EQ(small.token_budgets, (List{4, 8, 16, 32, 64, 128}));
  EXPECT_EQ(resolve({.range = {272, 13824}}).max_items, 50);
}

TEST(GraphConfig, RangesOfModelsMustBePositiveAndAscending) {
  expect_error(ErrorCode::kInvalidArgument, "Both must be positive", [] {
    (void)resolve({.range = {0, 128}});
  });
  expect_error(ErrorCode::kInvalidArgument, "Both must be positive", [] {
    (void)resolve({.range = {4, -1}});
  });
  expect_error(ErrorCode::kInvalidArgument, "min_budget=200 > max_budget=100", [] {
    (void)resolve({.range = {200, 100}});
  });
}

TEST(GraphConfig, GivenItemsMustFitTheLargestBudgetOfTheModel) {
  expect_error(ErrorCode::kInvalidArgument, "must be <= the model's largest budget (128)", [] {
    (void)resolve({.items = 256, .range = {64, 128}});
  });
}

TEST(GraphConfig, LoweredItemsAreLogged) {
  RecordingLog log;
  (void)resolve({.log = &log});  // 16384 / 64 = 256 items, but the smallest budget is 64
  EXPECT_EQ(log.count("max_items_lowered from=256 to=64"), 1);
  (void)resolve({.range = {272, 13824}, .log = &log});  // 50 needs no lowering
  EXPECT_EQ(log.lines.size(), 1u);
}

TEST(GraphConfig, SingleItemBatchesAreLogged) {
  RecordingLog log;
  EXPECT_EQ(resolve({.range = {256, 256}, .log = &log}).max_items, 1);
  EXPECT_EQ(log.count("no_packing max_items=1 min_budget=256 max_budget=256"), 1);
}

TEST(GraphConfig, FramesAreZeroWithoutVideo) {
  EXPECT_EQ(resolve({.frames = 64, .video_allowed = false}).max_frames, 0);
}

TEST(GraphConfig, FramesAreInferredFromItemsAndTheModel) {
  EXPECT_EQ(resolve({.frames = 64}).max_frames, 64);
  GraphSpec video;
  video.max_frames_per_video = 16;
  const GraphConfig config = resolve({.items = 8, .spec = video});
  EXPECT_EQ(config.max_frames, 128);
  EXPECT_EQ(config.max_seqs, 128);
}

TEST(GraphConfig, VideosAreServedWhereFramesAndModelAllow) {
  GraphSpec spec;
  spec.modalities = {Modality::kImage, Modality::kVideo};
  const GraphConfig config = resolve({.frames = 64, .spec = spec});
  EXPECT_TRUE(serves(spec, config, Modality::kImage));
  EXPECT_TRUE(serves(spec, config, Modality::kVideo));
  const GraphConfig no_video = resolve({.frames = 0, .spec = spec});
  EXPECT_TRUE(serves(spec, no_video, Modality::kImage));
  EXPECT_FALSE(serves(spec, no_video, Modality::kVideo));
  spec.modalities = {Modality::kImage};
  EXPECT_FALSE(serves(spec, config, Modality::kVideo));
}

TEST(GraphConfig, SequencesCoverImagesWhenThereIsNoVideo) {
  const GraphConfig config = resolve({.items = 8, .video_allowed = false});
  EXPECT_EQ(config.max_seqs, 8);
}

TEST(GraphConfig, AModelNeedsAPath) {
  GraphSpec spec;
  spec.paths.clear();
  expect_error(ErrorCode::kInvalidArgument, "at least one path",
               [&] { (void)resolve({.spec = spec}); });
}

GraphSpec dual_spec() {
  GraphSpec spec;
  spec.paths = {{.name = "global", .min_token_budget = 272, .unit = 272},
                {.name = "local", .min_token_budget = 100, .allow_zero_tokens = true, .unit = 100}};
  return spec;
}

TEST(GraphConfig, EveryNonZeroBudgetOfEveryPathIsAGraph) {
  const GraphConfig dual = resolve({.range = {272, 13824}, .spec = dual_spec()});
  EXPECT_EQ(dual.path_budgets[0].size(), 7u);
  EXPECT_EQ(dual.path_budgets[1].size(), 10u);  // the marker 0 and nine budgets
  EXPECT_EQ(count_graphs(dual), 16);
  EXPECT_EQ(capture_order(dual).size(), 16u);
}

GraphConfig resolve_lists(const std::map<std::string, List>& lists, const GraphSpec& spec,
                          const List& common = {}) {
  GraphConfigRequest request = to_config_request({.budgets = common});
  request.user.encoder_cudagraph_path_token_budgets = lists;
  return resolve_graph_config(
      spec,
      [] {
        return BudgetRange{272, 1088};
      },
      request);
}

TEST(GraphConfig, APathMayHaveAListOfItsOwn) {
  const GraphConfig both = resolve_lists({{"global", {544}}, {"local", {300, 750}}}, dual_spec());
  EXPECT_EQ(both.path_budgets, (std::vector<List>{{544}, {0, 300, 700}}));
  const GraphConfig one = resolve_lists({{"local", {300}}}, dual_spec());
  EXPECT_EQ(one.path_budgets, (std::vector<List>{{272, 544, 1088}, {0, 300}}));
  EXPECT_EQ(resolve_lists({{"default", {16, 64}}}, {}).token_budgets, (List{16, 64}));
}

TEST(GraphConfig, ListsOfPathsAreRefusedWithTheNamesOfThePaths) {
  const auto refused = [](const std::map<std::string, List>& lists, const std::string& message,
                          const List& common = {}) {
    expect_error(ErrorCode::kInvalidArgument, message,
                 [&] { (void)resolve_lists(lists, dual_spec(), common); });
  };
  refused({{"page", {272}}},
          "encoder_cudagraph_token_budgets: the paths of this model are \"global\", \"local\", got "
          "\"page\"");
  refused({{"local", {0}}}, "of path \"local\" must be positive, got [0]");
  refused({{"local", {}}}, "of path \"local\": expected at least one");
  refused({{"local", {99}}}, "of path \"local\" must hold a unit of 100 tokens, got [99]");
  refused({{"local", {100}}}, "expected one list or a list per path, got both", {272});
}

TEST(GraphConfig, ManyGraphsAreLogged) {
  RecordingLog log;
  List budgets(65);
  std::iota(budgets.begin(), budgets.end(), 16);
  (void)resolve({.budgets = budgets, .log = &log});
  EXPECT_EQ(log.count("many_graphs count=65"), 1);
}

TEST(GraphConfig, CaptureGoesPathByPathFromTheLargestBudget) {
  GraphSpec spec;
  spec.paths = {{.name = "a"}, {.name = "b"}};
  const GraphConfig config = resolve({.budgets = {16, 64}, .spec = spec});
  std::string order;
  for (const GraphKey& key : capture_order(config)) {
    order += cat(spec.paths[static_cast<std::size_t>(key.path)].name, key.budget, ' ');
  }
  EXPECT_EQ(order, "a64 a16 b64 b16 ");
}

TEST(GraphConfig, EagerConfigLimitsOnlyTokens) {
  const GraphConfig config = eager_config(dual_spec(), 512);
  EXPECT_EQ(config.path_budgets, (std::vector<List>{{512}, {512}}));
  EXPECT_TRUE(config.token_budgets.empty());
  EXPECT_GT(config.max_items, 1'000'000);
}

}  // namespace
}  // namespace fovea
