// Lines about sub-batches, and that they cost nothing unless they are wanted.
#include <gtest/gtest.h>

#include "graph/harness.h"
#include "graph/recording_log.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

/// Lines of an event that a manager wrote, without its name.
std::vector<std::string> lines_of(const RecordingLog& log, std::string_view event) {
  std::vector<std::string> lines;
  for (const auto& [level, line] : log.lines) {
    if (!line.starts_with(event)) continue;
    EXPECT_EQ(level, LogLevel::kDebug);
    lines.push_back(line.substr(event.size() + 1));
  }
  return lines;
}

constexpr std::string_view kReplay = "encoder_graphs.replay";
constexpr std::string_view kEager = "encoder_graphs.eager";

TEST(BatchLog, TellsLoadAndWasteOfEveryReplay) {
  RecordingLog log;
  GraphManagerOptions options = small_options();
  options.log = &log;
  MockHarness h = make_mock({}, options);
  h.manager.capture();
  // 4, 16 and 40 tokens: the first runs apart, since 16 and 16 are less than the 64 of 20 tokens.
  (void)h.encode(mock_batch(h.model, {{1, 8, 8}, {1, 4, 4}, {2, 8, 10}}));
  (void)h.encode(mock_batch(h.model, {{1, 4, 4}}));
  EXPECT_EQ(lines_of(log, kReplay),
            (std::vector<std::string>{
                "device=cpu sub_batch=1 path=default items=1 tokens=4 budget=16 waste=12 "
                "waste_percent=75",
                "device=cpu sub_batch=2 path=default items=2 tokens=56 budget=64 waste=8 "
                "waste_percent=12.5",
                "device=cpu sub_batch=3 path=default items=1 tokens=4 budget=16 waste=12 "
                "waste_percent=75"}));
  EXPECT_EQ(lines_of(log, kEager), std::vector<std::string>{});
}

TEST(BatchLog, TellsTheReasonOfEveryEagerRun) {
  RecordingLog log;
  GraphManagerOptions options = small_options();
  options.log = &log;
  MockHarness h = make_mock({}, options);
  (void)h.encode(mock_batch(h.model, {{1, 4, 4}}));  // nothing is captured
  h.manager.capture();
  (void)h.encode(mock_batch(h.model, {{1, 18, 18}}));
  (void)h.encode_eager(mock_batch(h.model, {{1, 4, 4}, {1, 4, 4}}));
  EXPECT_EQ(lines_of(log, kEager),
            (std::vector<std::string>{
                "device=cpu sub_batch=1 path=default reason=not_captured items=1 tokens=4",
                "device=cpu sub_batch=2 path=default reason=oversized items=1 tokens=81",
                "device=cpu sub_batch=3 path=default reason=requested items=2 tokens=8"}));
}

TEST(BatchLog, PathsOfASubBatchHaveALineEach) {
  RecordingLog log;
  GraphManagerOptions options;
  options.user.encoder_cudagraph_max_vision_items_per_batch = 8;
  options.log = &log;
  DualHarness h(DualModel(544), options);  // global [272, 544], local [0, 100, 200, 400, 544]
  h.manager.capture();
  (void)h.encode(Batch({h.model.make_crop(1, 1, 1), h.model.make_crop(1, 2, 2)}));
  (void)h.encode(Batch({h.model.make_crop(2, 3, 1)}));  // 600 local tokens
  EXPECT_EQ(lines_of(log, kReplay),
            (std::vector<std::string>{
                "device=cpu sub_batch=1 path=global items=2 tokens=544 budget=544 waste=0 "
                "waste_percent=0",
                "device=cpu sub_batch=1 path=local items=1 tokens=200 budget=200 waste=0 "
                "waste_percent=0",
                "device=cpu sub_batch=2 path=global items=1 tokens=272 budget=272 waste=0 "
                "waste_percent=0"}));
  EXPECT_EQ(lines_of(log, kEager),
            (std::vector<std::string>{
                "device=cpu sub_batch=2 path=local reason=oversized items=1 tokens=600"}));
}

}  // namespace
}  // namespace fovea
