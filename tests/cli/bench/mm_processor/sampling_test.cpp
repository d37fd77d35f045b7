// What random requests hold. Case numbers are those of the encoder graph specification.
#include "bench/mm_processor/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/expect_usage_error.h"

namespace fovea::cli {
namespace {

using test::expect_usage_error;

constexpr ItemSize kPicture{64, 32, 1};
constexpr ItemSize kVideo{64, 32, 4};

/// Requests of one sampler.
std::vector<std::vector<ItemSize>> requests_of(const SamplingOptions& options, int count) {
  const ItemSampler sampler(options);
  Random random(0);
  std::vector<std::vector<ItemSize>> requests;
  for (int i = 0; i < count; ++i) requests.push_back(sampler.request(random));
  return requests;
}

std::int64_t number_of(const std::vector<ItemSize>& items, std::int64_t num_frames) {
  return std::count_if(items.begin(), items.end(),
                       [&](const ItemSize& size) { return size.num_frames == num_frames; });
}

TEST(BenchSampling, Case81_bench_sampling) {
  SamplingOptions options{.items_per_request = 2, .range_ratio = 0.5};
  options.limits.images = 3;
  std::set<std::size_t> counts;
  for (const auto& request : requests_of(options, 200)) counts.insert(request.size());
  EXPECT_EQ(counts, (std::set<std::size_t>{1, 2, 3}));
}

TEST(BenchSampling, Case82_bench_limit) {
  const SamplingOptions options{.items_per_request = 3,
                                .limits = {.images = 1, .videos = 2},
                                .buckets = {{kPicture, 0.9}, {kVideo, 0.1}}};
  for (const auto& request : requests_of(options, 200)) {
    EXPECT_EQ(number_of(request, 1), 1);  // three items need all that the limits allow
    EXPECT_EQ(number_of(request, 4), 2);
  }
}

TEST(BenchSampling, Case83_bench_errors) {
  const auto refused = [](const std::string& part, SamplingOptions options) {
    expect_usage_error(part, [&] { ItemSampler sampler(std::move(options)); });
  };
  refused("expected a number from 0 to 1, got 1.5", {.range_ratio = 1.5});
  refused("expected a number from 0 to 1, got -0.1", {.range_ratio = -0.1});
  refused("a bucket holds videos, but --random-mm-limit-mm-per-prompt has no \"video\"",
          {.limits = {.images = 1, .videos = {}}, .buckets = {{kPicture, 1}, {kVideo, 0}}});
  refused("a bucket holds images", {.limits = {.images = {}, .videos = 1}});
  refused("expected a probability above 0", {.buckets = {{kPicture, 0}, {kVideo, 0}}});
  refused("expected a probability above 0", {.buckets = {}});
  refused("expected probabilities >= 0, got -0.5", {.buckets = {{kPicture, -0.5}, {kVideo, 1}}});
  refused("at least 4 items, but the limits allow 3",
          {.items_per_request = 4, .limits = {.images = 3, .videos = 0}});
}

TEST(BenchSampling, LimitsOfModalitiesThatCannotOccurDoNotCount) {
  // Only pictures have a probability, so the 5 videos allowed give no room for a third item.
  const SamplingOptions options{.items_per_request = 3,
                                .limits = {.images = 2, .videos = 5},
                                .buckets = {{kPicture, 1}, {kVideo, 0}}};
  expect_usage_error("the limits allow 2", [&] { ItemSampler sampler(options); });
}

TEST(BenchSampling, RangeEndsAreRoundedOutwards) {
  const ItemSampler sampler({.items_per_request = 3, .range_ratio = 0.5});
  EXPECT_EQ(sampler.min_items(), 1);  // floor of 1.5
  EXPECT_EQ(sampler.max_items(), 5);  // ceiling of 4.5
  const ItemSampler whole({.items_per_request = 3, .range_ratio = 1});
  EXPECT_EQ(whole.min_items(), 0);
  EXPECT_EQ(whole.max_items(), 6);
}

TEST(BenchSampling, BucketsFollowTheirProbabilities) {
  // 0.3 and 0.1 stand for 3/4 and 1/4. Five standard deviations of 4000 draws are 0.034.
  const SamplingOptions options{.buckets = {{{8, 8, 1}, 0.3}, {{16, 16, 1}, 0.1}}};
  int small = 0;
  for (const auto& request : requests_of(options, 4000)) small += request[0].width_px == 8 ? 1 : 0;
  EXPECT_NEAR(small / 4000.0, 0.75, 0.034);
}

TEST(BenchSampling, ChatPicturesVaryAroundTheirSizes) {
  const SamplingOptions options = chat_pictures();
  double probability = 0;
  for (const SizeBucket& bucket : options.buckets) probability += bucket.probability;
  EXPECT_NEAR(probability, 1, 1e-9);

  std::set<std::int64_t> widths;
  for (const auto& request : requests_of(options, 500)) {
    ASSERT_EQ(request.size(), 1U);
    const ItemSize& size = request[0];
    EXPECT_TRUE(std::any_of(options.buckets.begin(), options.buckets.end(),
                            [&](const auto& b) {
                              return std::abs(size.width_px * 100 - b.size.width_px * 100) <=
                                         b.size.width_px * 15 + 100 &&
                                     std::abs(size.height_px * 100 - b.size.height_px * 100) <=
                                         b.size.height_px * 15 + 100;
                            }))
        << size.width_px << "x" << size.height_px;
    widths.insert(size.width_px);
  }
  EXPECT_GT(widths.size(), 100U);
}

TEST(BucketConfig, ReadsPythonAndJson) {
  for (const char* text :
       {"{(256, 512, 1): 0.5, (720, 1280, 16): 0.0}", "{(256,512,1):0.5,(720,1280,16):0.0,}",
        "{\"(256, 512, 1)\": 0.5, \"(720, 1280, 16)\": 0.0}",
        "{'(256, 512, 1,)': 5e-1, '[720, 1280, 16]': 0}",
        " { [256, 512, 1] : .5,\n(720,1280,16):0}"}) {
    const std::vector<SizeBucket> buckets = parse_bucket_config(text);
    ASSERT_EQ(buckets.size(), 2U) << text;
    EXPECT_EQ(buckets[0].size.height_px, 256);
    EXPECT_EQ(buckets[0].size.width_px, 512);
    EXPECT_EQ(buckets[0].size.num_frames, 1);
    EXPECT_EQ(buckets[0].probability, 0.5);
    EXPECT_EQ(buckets[1].size.num_frames, 16);
    EXPECT_EQ(buckets[1].probability, 0);
  }
  EXPECT_TRUE(parse_bucket_config("{}").empty());
}

TEST(BucketConfig, SaysWhatIsWrong) {
  const struct {
    const char* text;
    const char* complaint;
  } kCases[] = {
      {"", "expected '{', got the end"},
      {"(256, 256, 1): 1", "expected '{'"},
      {"{(256, 256, 1): 1", "expected '}', got the end"},
      {"{(256, 256, 1): 1} x", "expected nothing after '}', got \"x\""},
      {"{(256, 256, 1) 1}", "expected ':'"},
      {"{(256, 256, 1): }", "expected a probability"},
      {"{(256, 256, 1): nan}", "expected a finite probability"},
      {"{(256, 256): 1}", "expected ','"},
      {"{(256, 256, 1]: 1}", "expected ')'"},
      {"{\"(256, 256, 1): 1}", "expected '\"'"},
      {"{(a, 256, 1): 1}", "expected a whole number, got \"a, 256, 1): 1}\""},
      {"{(0, 256, 1): 1}", "expected a height from 1 to 65535, got 0"},
      {"{(256, 70000, 1): 1}", "expected a width from 1 to 65535, got 70000"},
      {"{(256, 256, 0): 1}", "expected a number of frames from 1 to 2048, got 0"},
      {"{(8, 8, 1): 1, (8, 8, 1): 2}", "expected every size once"},
  };
  for (const auto& [text, complaint] : kCases) {
    SCOPED_TRACE(text);
    expect_usage_error(complaint, [&] { (void)parse_bucket_config(text); });
  }
}

TEST(ItemLimits, ReadsJson) {
  const ItemLimits limits = parse_item_limits(R"({"image": 3, "video": 0})");
  EXPECT_EQ(limits.images, 3);
  EXPECT_EQ(limits.videos, 0);
  EXPECT_EQ(parse_item_limits(R"({"image": 3})").videos, std::nullopt);
}

TEST(ItemLimits, SaysWhatIsWrong) {
  for (const char* text : {"", "[1]", "{", R"({"image": -1})", R"({"image": 1.5})",
                           R"({"video": "1"})", R"({"audio": 1})", R"({"image": 10000000})"}) {
    SCOPED_TRACE(text);
    expect_usage_error("--random-mm-limit-mm-per-prompt: ", [&] { (void)parse_item_limits(text); });
  }
}

}  // namespace
}  // namespace fovea::cli
