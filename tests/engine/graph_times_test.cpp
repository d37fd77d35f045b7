// Measured times between processes: what is written is read, and nothing else is believed.
#include "engine/graph_times.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "core/file.h"
#include "fovea/fovea.h"
#include "graph/harness.h"
#include "graph/recording_log.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::MockHarness;
using test::MockModel;
using test::read_text;
using test::RecordingLog;
using test::TemporaryDirectory;
using test::write_text;

std::string golden_model() { return test::golden_folder("qwen3_vl", "golden.safetensors"); }

std::vector<GraphTimes> some_times() {
  return {{.key = {.path = 1, .budget = 64},
           .replay_ms = 0.1,
           .eager_ms = 1.0 / 3,
           .tokens = 60,
           .low = {.tokens = 30, .replay_ms = 0.07, .eager_ms = 0.3},
           .capacity = {.tokens = 64, .items = 4, .seqs = 8}},
          {.key = {.budget = 4},
           .replay_ms = 2,
           .eager_ms = 1,
           .tokens = 4,
           .low = {},
           .capacity = {.tokens = 4, .items = 1, .seqs = 1}}};
}

void expect_same(const GraphTimes& got, const GraphTimes& want) {
  EXPECT_EQ(got.key, want.key);
  EXPECT_EQ(got.replay_ms, want.replay_ms);
  EXPECT_EQ(got.eager_ms, want.eager_ms);
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_EQ(got.low.tokens, want.low.tokens);
  EXPECT_EQ(got.low.replay_ms, want.low.replay_ms);
  EXPECT_EQ(got.low.eager_ms, want.low.eager_ms);
  EXPECT_EQ(got.capacity, want.capacity);
}

TEST(GraphTimesFile, GivesBackWhatWasSaved) {
  const TemporaryDirectory folder;
  const std::string path = folder / "made/when/needed.json";
  save_graph_times(path, "a GPU", some_times());
  const std::vector<GraphTimes> times = load_graph_times(path, "a GPU");
  ASSERT_EQ(times.size(), 2u);
  for (std::size_t i = 0; i < times.size(); ++i) expect_same(times[i], some_times()[i]);
}

TEST(GraphTimesFile, IsIgnoredByOthers) {
  const TemporaryDirectory folder;
  save_graph_times(folder / "times", "a GPU", some_times());
  EXPECT_TRUE(load_graph_times(folder / "times", "another GPU").empty());
  EXPECT_TRUE(load_graph_times(folder / "absent", "a GPU").empty());
  EXPECT_TRUE(load_graph_times(folder.path(), "a GPU").empty());
}

TEST(GraphTimesFile, IsIgnoredWhereverItIsCut) {
  const TemporaryDirectory folder;
  const std::string path = folder / "times";
  save_graph_times(path, "a GPU", some_times());
  const std::string text = read_text(path);
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {  // the last is a line break
    write_text(path, text.substr(0, length));
    EXPECT_TRUE(load_graph_times(path, "a GPU").empty()) << length;
  }
}

TEST(GraphTimesFile, IsIgnoredWithValuesThatNothingTakes) {
  const TemporaryDirectory folder;
  const std::string path = folder / "times";
  save_graph_times(path, "a GPU", some_times());
  const std::string text = read_text(path);
  const auto expect_ignored = [&](const std::string& part, const std::string& other) {
    std::string damaged = text;
    ASSERT_NE(damaged.find(part), std::string::npos) << part;
    write_text(path, damaged.replace(damaged.find(part), part.size(), other));
    EXPECT_TRUE(load_graph_times(path, "a GPU").empty()) << other;
  };
  expect_ignored("\"replay_ms\": 0.1", "\"replay_ms\": -0.1");
  expect_ignored("\"replay_ms\": 0.1", "\"replay_ms\": 0");
  expect_ignored("\"replay_ms\": 0.1", "\"replay_ms\": NaN");
  expect_ignored("\"replay_ms\": 0.1", "\"replay_ms\": \"0.1\"");
  expect_ignored("\"tokens\": 60", "\"tokens\": 0");
  expect_ignored("\"replay_ms\": 0.07", "\"replay_ms\": 0");
  expect_ignored("\"low\"", "\"other\"");
  expect_ignored("\"seqs\"", "\"other\"");
  expect_ignored("\"graphs\": [", "\"graphs\": [7,");
}

TEST(GraphTimesFile, SaysWhyItCannotBeWritten) {
  const TemporaryDirectory folder;
  write_text(folder / "file", "");
  expect_error(ErrorCode::kIo, "file/times: the directory ",
               [&] { save_graph_times(folder / "file/times", "a GPU", some_times()); });
}

TEST(GraphTimesIdentity, ChangesWithAllThatTimesDependOn) {
  const TemporaryDirectory folder;
  const std::string model = folder / "model";
  fs::copy(golden_model(), model);
  const DeviceProperties gpu{.description = "a GPU", .software = "driver 1", .parallelism = 132};
  std::set<std::string> identities{graph_times_identity(model, gpu, {})};
  const auto is_new = [&](const DeviceProperties& device, const EngineOptions& options) {
    return identities.insert(graph_times_identity(model, device, options)).second;
  };
  EXPECT_FALSE(is_new(gpu, {.device = "cuda:1", .num_threads = 3}));
  DeviceProperties other = gpu;
  other.description = "another GPU";
  EXPECT_TRUE(is_new(other, {}));
  other = gpu;
  other.software = "driver 2";
  EXPECT_TRUE(is_new(other, {}));
  other = gpu;
  other.parallelism = 114;
  EXPECT_TRUE(is_new(other, {}));
  EXPECT_TRUE(is_new(gpu, {.attention = AttentionBackend::kCudnn}));
  EXPECT_TRUE(is_new(gpu, {.media = {.max_pixels = 10'000}}));
  write_text(model + "/config.json", read_text(model + "/config.json") + " ");
  EXPECT_TRUE(is_new(gpu, {}));
  fs::remove(model + "/preprocessor_config.json");
  EXPECT_TRUE(is_new(gpu, {}));
}

/// A manager that measures with a clock which the model moves, and keeps its times.
GraphManagerOptions keeping(const EngineOptions& options, const std::shared_ptr<double>& clock) {
  GraphManagerOptions manager = test::small_options();
  manager.measure = true;
  manager.clock_ms = [clock] { return *clock; };
  keep_graph_times(manager, golden_model(), {.description = "a GPU"}, options);
  return manager;
}

TEST(KeptGraphTimes, SpareTheNextManagerItsMeasurements) {
  const TemporaryDirectory folder;
  const auto clock = std::make_shared<double>(0);
  const EngineOptions options{.cache_dir = folder / "cache"};
  for (const bool stored : {false, true}) {
    MockHarness h(MockModel({.clock_ms = clock, .launch_ms = 20}), keeping(options, clock));
    h.manager.capture();
    for (const GraphReport& graph : h.manager.stats().graphs) {
      EXPECT_EQ(graph.stored_times, stored) << graph.budget;
      EXPECT_GT(graph.replay_ms, 0) << graph.budget;
    }
  }
  const std::vector<std::string> files = list_directory(options.cache_dir);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_TRUE(files[0].starts_with("graph-times-")) << files[0];
  EXPECT_TRUE(files[0].ends_with(".json")) << files[0];
}

TEST(KeptGraphTimes, ReplaceADamagedFile) {
  const TemporaryDirectory folder;
  const auto clock = std::make_shared<double>(0);
  const EngineOptions options{.cache_dir = folder.path()};
  const auto capture = [&] {
    MockHarness h(MockModel({.clock_ms = clock}), keeping(options, clock));
    h.manager.capture();
    return h.manager.stats().graphs.front().stored_times;
  };
  EXPECT_FALSE(capture());
  write_text(folder / list_directory(folder.path()).front(), "{\"identity\": ");
  EXPECT_FALSE(capture());
  EXPECT_TRUE(capture());
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(KeptGraphTimes, WarnOnceIfTheFolderCannotBeMade) {
  const TemporaryDirectory folder;
  write_text(folder / "file", "");
  const auto clock = std::make_shared<double>(0);
  RecordingLog log;
  const EngineOptions options{.cache_dir = folder / "file/cache", .log = &log};
  MockHarness h(MockModel({.clock_ms = clock}), keeping(options, clock));
  h.manager.capture();
  h.manager.capture();
  EXPECT_EQ(log.count("cache_dir.not_written message="), 1);
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_EQ(log.lines[0].first, LogLevel::kWarning);
  EXPECT_GT(h.manager.stats().graphs.front().replay_ms, 0);
}

TEST(CacheDir, StaysAwayOnTheCpu) {
  const TemporaryDirectory folder;
  Engine engine = Engine::load(golden_model(),
                               {.device = "cpu", .num_threads = 1, .cache_dir = folder / "cache"});
  engine.warm_up();
  EXPECT_FALSE(fs::exists(folder / "cache"));
}

}  // namespace
}  // namespace fovea
