// Planning against streams of requests that vLLM 0.33's own scheduler and cache manager ran: every
// plan, every number of rows and the order of eviction after every step.
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cache/requests.h"
#include "core/json.h"
#include "fovea/encoder_cache.h"

namespace fovea {
namespace {

using Indices = std::vector<std::size_t>;

/// What a file of gzip holds. @throws std::runtime_error if it cannot be read.
std::string gunzipped(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), &gzclose);
  if (file == nullptr) throw std::runtime_error("no " + path);
  std::string text;
  std::array<char, 1 << 16> block;
  for (int read = 1; read > 0;) {
    read = gzread(file.get(), block.data(), block.size());
    if (read < 0) throw std::runtime_error("cannot unpack " + path);
    text.append(block.data(), static_cast<std::size_t>(read));
  }
  return text;
}

Indices indices(const JsonView& from, std::string_view key) {
  Indices values;
  if (const auto list = from.find(key)) {
    for (const JsonView& value : list->elements()) {
      values.push_back(static_cast<std::size_t>(value.as_int()));
    }
  }
  return values;
}

std::vector<std::string> texts(const JsonView& from, std::string_view key) {
  std::vector<std::string> values;
  if (const auto list = from.find(key)) {
    for (const JsonView& value : list->elements()) values.push_back(value.as_string());
  }
  return values;
}

CacheItem item_of(const JsonView& from) {
  const std::string key = from.at("key").as_string();
  const std::int64_t offset = from.at("offset").as_int();
  if (const auto mask = from.find("mask")) {
    return test::masked_item(key, offset, mask->as_string());
  }
  return test::item_at(key, offset, from.at("length").as_int());
}

/// The scheduler's side of one stream.
class Stream {
 public:
  explicit Stream(const JsonView& from) : cache_(from.at("capacity").as_int()) {}

  void run(const JsonView& op) {
    const std::string name = op.at("op").as_string();
    if (name == "drain") {
      drain(op.at("expect"));
    } else {
      run(name, op, requests_[op.at("id").as_string()]);
    }
    const JsonView expect = op.at("expect");
    EXPECT_EQ(test::state_of(cache_),
              (test::CacheState{expect.at("free").as_int(), expect.at("freeable").as_int(),
                                texts(expect, "order")}));
  }

 private:
  struct Scheduled {
    CacheRequest request;
    std::int64_t num_tokens = 0;
    WindowPlan plan;
  };

  void run(const std::string& name, const JsonView& op, Scheduled& scheduled) {
    const CacheRequest& request = scheduled.request;
    if (name == "request") {
      scheduled = {.request = {op.at("id").as_string(), {}},
                   .num_tokens = op.at("num_tokens").as_int()};
      for (const JsonView& item : op.at("items").elements()) {
        scheduled.request.items.push_back(item_of(item));
      }
    } else if (name == "plan") {
      plan(op, scheduled);
    } else if (name == "apply") {
      for (const Indices* items :
           {&scheduled.plan.local, &scheduled.plan.remote, &scheduled.plan.duplicates}) {
        for (const std::size_t item : *items) cache_.allocate(request, item);
      }
    } else if (name == "consumed") {
      release_consumed(cache_, request, op.at("computed").as_int() - op.int_or("placeholders", 0));
    } else if (name == "release_all") {
      cache_.release_all(request);
    } else {
      FAIL() << "the stream has an operation that nobody knows: " << name;
    }
  }

  void plan(const JsonView& op, Scheduled& scheduled) {
    const std::int64_t computed = op.at("computed").as_int();
    const std::vector<std::string> remote = texts(op, "remote");
    scheduled.plan =
        plan_window(cache_, scheduled.request, {computed, computed + op.at("wanted").as_int()},
                    {.compute_budget = op.at("budget").as_int(),
                     .look_ahead = op.int_or("look_ahead", 0),
                     .no_split = op.bool_or("no_split", false),
                     .num_tokens = scheduled.num_tokens,
                     .is_remote = [&](const std::string& key) {
                       return std::ranges::find(remote, key) != remote.end();
                     }});
    const JsonView expect = op.at("expect");
    const WindowPlan& plan = scheduled.plan;
    EXPECT_EQ(plan.length, expect.int_or("length_reserved", expect.at("length").as_int()));
    EXPECT_EQ(plan.compute_budget, expect.at("budget").as_int());
    EXPECT_EQ(plan.local, indices(expect, "local"));
    EXPECT_EQ(plan.remote, indices(expect, "remote"));
    EXPECT_EQ(plan.duplicates, indices(expect, "duplicates"));
    EXPECT_EQ(plan.conflict.has_value(), expect.bool_or("failed", false));
  }

  /// The reference leaves out keys that were entered again since their eviction; here the worker's
  /// order makes that unnecessary, so the test does it.
  void drain(const JsonView& expect) {
    std::vector<std::string> evicted;
    for (const std::string& key : cache_.drain_evicted()) {
      if (!cache_.find_rows(key)) evicted.push_back(key);
    }
    std::vector<std::string> expected = texts(expect, "evicted");
    std::ranges::sort(evicted);
    evicted.erase(std::unique(evicted.begin(), evicted.end()), evicted.end());
    std::ranges::sort(expected);
    EXPECT_EQ(evicted, expected);
  }

  EncoderCache cache_;
  std::map<std::string, Scheduled> requests_;
};

class SchedulerVectors : public ::testing::TestWithParam<const char*> {};

TEST_P(SchedulerVectors, EveryPlanIsThatOfTheReference) {
  const std::string path = FOVEA_TEST_SOURCE_DIR "/tests/cache/scheduler_vectors.json.gz";
  const JsonDocument file = JsonDocument::parse(gunzipped(path), path);
  const std::vector<JsonView> streams = file.root().at(GetParam()).elements();
  ASSERT_FALSE(streams.empty());
  for (std::size_t index = 0; index < streams.size(); ++index) {
    const JsonView& from = streams[index];
    SCOPED_TRACE(std::to_string(index) + " " + from.string_or("name", from.string_or("mode", "")));
    Stream stream(from);
    const std::vector<JsonView> ops = from.at("ops").elements();
    for (std::size_t op = 0; op < ops.size(); ++op) {
      SCOPED_TRACE("operation " + std::to_string(op));
      stream.run(ops[op]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Streams, SchedulerVectors, ::testing::Values("streams", "worked"),
                         [](const auto& of) { return std::string(of.param); });

}  // namespace
}  // namespace fovea
