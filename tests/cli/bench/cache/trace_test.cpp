// Requests of chance and of files.
#include "bench/cache/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "cli/expect_usage_error.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::cli {
namespace {

TraceOptions options_of(double repeat_rate, std::uint64_t seed = 0) {
  return {.num_requests = 400,
          .shapes = parse_shapes("100,8x20", "--shapes"),
          .repeat_rate = repeat_rate,
          .seed = seed};
}

std::vector<TraceItem> items_of(const Trace& trace) {
  std::vector<TraceItem> items;
  for (const TraceRequest& request : trace) {
    items.insert(items.end(), request.items.begin(), request.items.end());
  }
  return items;
}

std::size_t num_keys(const Trace& trace) {
  std::set<std::string> keys;
  for (const TraceItem& item : items_of(trace)) keys.insert(item.key);
  return keys.size();
}

TEST(TimestampTokens, GrowWithTheSeconds) {
  EXPECT_EQ(timestamp_tokens(0.3), 6);
  EXPECT_EQ(timestamp_tokens(9.9), 6);
  EXPECT_EQ(timestamp_tokens(10.0), 7);
  EXPECT_EQ(timestamp_tokens(99.5), 7);
  EXPECT_EQ(timestamp_tokens(123.4), 8);
  EXPECT_EQ(timestamp_tokens(1234.5), 9);
  EXPECT_EQ(timestamp_tokens(12345.6), 10);
}

TEST(PlaceholderMask, HasTimestampsAndMarkersBetweenTheRowsOfAVideo) {
  const std::vector<bool> mask = placeholder_mask({.patches = 2, .rows = 3}, 10);
  std::string text;
  for (const bool bit : mask) text += bit ? '1' : '0';
  EXPECT_EQ(text, std::string("0000000") + "111" + "0" + "00000000" + "111" + "0");
  EXPECT_EQ(placeholder_mask({.rows = 5}, 10), std::vector<bool>(5, true));
}

TEST(RandomTrace, DependsOnItsOptionsAlone) {
  const Trace trace = random_trace(options_of(0.5));
  const Trace again = random_trace(options_of(0.5));
  const Trace other = random_trace(options_of(0.5, 1));
  const auto keys = [](const Trace& of) {
    std::string text;
    for (const TraceItem& item : items_of(of)) text += item.key + " ";
    return text;
  };
  EXPECT_EQ(keys(trace), keys(again));
  EXPECT_NE(keys(trace), keys(other));
  EXPECT_TRUE(std::ranges::is_sorted(trace, {}, &TraceRequest::step));
}

TEST(RandomTrace, RepeatsAsOftenAsAsked) {
  const Trace never = random_trace(options_of(0));
  EXPECT_EQ(num_keys(never), items_of(never).size());
  EXPECT_EQ(num_keys(random_trace(options_of(1))), 1u);
  const Trace half = random_trace(options_of(0.5));
  EXPECT_NEAR(static_cast<double>(num_keys(half)), static_cast<double>(items_of(half).size()) / 2,
              60);
}

TEST(RandomTrace, HasAsManyRequestsPerStepAsAsked) {
  TraceOptions options = options_of(0);
  options.arrivals = 0.25;
  EXPECT_NEAR(static_cast<double>(random_trace(options).back().step), 1600, 320);
}

TEST(ReadTrace, SortsByArrival) {
  const fovea::test::TemporaryDirectory folder;
  std::ofstream(folder / "trace") << R"({"step": 3, "items": [{"key": "a", "rows": 5}]})"
                                  << "\n\n"
                                  << R"({"items": [{"key":"b","patches":2,"rows":4,"text":7}],)"
                                  << R"("text": 9})";
  const Trace trace = read_trace(folder / "trace");
  ASSERT_EQ(trace.size(), 2u);
  EXPECT_EQ(trace[0].step, 0);
  EXPECT_EQ(trace[0].text, 9);
  EXPECT_EQ(trace[0].items[0].patches, 2);
  EXPECT_EQ(trace[0].items[0].text, 7);
  EXPECT_EQ(trace[1].items[0].key, "a");
}

TEST(ReadTrace, NamesTheLineThatIsWrong) {
  const fovea::test::TemporaryDirectory folder;
  for (const std::string line :
       {"{", "[]", R"({"items": 3})", R"({"items": [{"rows": 3}]})",
        R"({"items": [{"key": "a", "rows": -3}]})", R"({"step": 1.5, "items": []})",
        R"({"items": [{"key": "a", "patches": 99999, "rows": 99999}]})"}) {
    std::ofstream(folder / "trace") << R"({"items": []})"
                                    << "\n"
                                    << line;
    fovea::test::expect_error(ErrorCode::kCorruptData,
                              "trace:2: ", [&] { (void)read_trace(folder / "trace"); });
  }
  fovea::test::expect_error(ErrorCode::kNotFound, "nowhere", [] { (void)read_trace("/nowhere"); });
}

TEST(ParseShapes, RefusesWhatIsNone) {
  for (const std::string text : {"", "x", "3x", "x3", "0", "2x0", "5,", "a", "99999x99999"}) {
    test::expect_usage_error("--shapes", [&] { (void)parse_shapes(text, "--shapes"); });
  }
}

}  // namespace
}  // namespace fovea::cli
