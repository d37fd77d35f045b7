// What random requests hold.
#include "bench/mm_processor/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/expect_usage_error.h"

namespace fovea::cli {
namespace {

using test::expect_usage_error;

const ItemSize kImage{64, 32, 1};
const ItemSize kVideo{64, 32, 4};

/// Requests of one sampler.
std::vector<std::vector<ItemSize>> requests_of(const SamplingOptions& options, int count) {
  const ItemSampler sampler(options);
  Random random(0);
  std::vector<std::vector<ItemSize>> requests(static_cast<std::size_t>(count));
  std::ranges::generate(requests, [&] { return sampler.request(random); });
  return requests;
}

std::int64_t number_of(const std::vector<ItemSize>& items, std::int64_t num_frames) {
  return std::count_if(items.begin(), items.end(),
                       [&](const ItemSize& size) { return size.num_frames == num_frames; });
}

TEST(ItemSampler, NumbersOfItemsReachBothEndsOfTheirRange) {
  SamplingOptions options{.items_per_request = 2, .range_ratio = 0.5};
  options.limits.images = 3;
  std::set<std::size_t> counts;
  for (const auto& request : requests_of(options, 200)) counts.insert(request.size());
  EXPECT_EQ(counts, (std::set<std::size_t>{1, 2, 3}));
}

TEST(ItemSampler, NoModalityExceedsItsLimit) {
  const SamplingOptions options{.items_per_request = 3,
                                .limits = {.images = 1, .videos = 2},
                                .buckets = {{kImage, 0.9}, {kVideo, 0.1}}};
  for (const auto& request : requests_of(options, 200)) {
    EXPECT_EQ(number_of(request, 1), 1);  // three items need all that the limits allow
    EXPECT_EQ(number_of(request, 4), 2);
  }
}

TEST(ItemSampler, FramesAreThoseOfAVideo) {
  const SamplingOptions options{.items_per_request = 3,
                                .limits = {.images = 1, .videos = 2},
                                .buckets = {{kImage, 0.5}, {kVideo, 0.5}}};
  for (const auto& request : requests_of(options, 3)) {
    for (const ItemSize& size : request)
      EXPECT_EQ(size.modality, size.num_frames > 1 ? Modality::kVideo : Modality::kImage);
  }
}

void expect_refused(const std::string& part, const SamplingOptions& options) {
  expect_usage_error(part, [&] { ItemSampler sampler(options); });
}

TEST(ItemSampler, RefusesARangeOutsideZeroToOne) {
  expect_refused("expected a number from 0 to 1, got 1.5", {.range_ratio = 1.5});
  expect_refused("expected a number from 0 to 1, got -0.1", {.range_ratio = -0.1});
}

TEST(ItemSampler, RefusesABucketOfAModalityWithoutALimitEvenIfItCannotOccur) {
  expect_refused("a bucket holds videos, but --random-mm-limit-mm-per-prompt has no \"video\"",
                 {.limits = {.images = 1, .videos = {}}, .buckets = {{kImage, 1}, {kVideo, 0}}});
  expect_refused("a bucket holds images", {.limits = {.images = {}, .videos = 1}});
}

TEST(ItemSampler, RefusesProbabilitiesThatNoDrawCanFollow) {
  expect_refused("expected a probability above 0", {.buckets = {{kImage, 0}, {kVideo, 0}}});
  expect_refused("expected a probability above 0", {.buckets = {}});
  expect_refused("expected probabilities >= 0, got -0.5",
                 {.buckets = {{kImage, -0.5}, {kVideo, 1}}});
}

TEST(ItemSampler, RefusesMoreItemsThanTheLimitsAllow) {
  expect_refused("at least 4 items, but the limits allow 3",
                 {.items_per_request = 4, .limits = {.images = 3, .videos = 0}});
}

TEST(ItemSampler, LimitsOfModalitiesThatCannotOccurDoNotCount) {
  // Only images have a probability, so the 5 videos allowed give no room for a third item.
  const SamplingOptions options{.items_per_request = 3,
                                .limits = {.images = 2, .videos = 5},
                                .buckets = {{kImage, 1}, {kVideo, 0}}};
  expect_refused("the limits allow 2", options);
}

TEST(ItemSampler, RangeEndsAreRoundedOutwards) {
  const ItemSampler sampler({.items_per_request = 3, .range_ratio = 0.5});
  EXPECT_EQ(sampler.min_items(), 1);  // floor of 1.5
  EXPECT_EQ(sampler.max_items(), 5);  // ceiling of 4.5
  const ItemSampler whole({.items_per_request = 3, .range_ratio = 1});
  EXPECT_EQ(whole.min_items(), 0);
  EXPECT_EQ(whole.max_items(), 6);
}

TEST(ItemSampler, BucketsFollowTheirProbabilities) {
  // 0.3 and 0.1 stand for 3/4 and 1/4. Five standard deviations of 4000 draws are 0.034.
  const SamplingOptions options{.buckets = {{{8, 8, 1}, 0.3}, {{16, 16, 1}, 0.1}}};
  int small = 0;
  for (const auto& request : requests_of(options, 4000)) small += request[0].width_px == 8 ? 1 : 0;
  EXPECT_NEAR(small / 4000.0, 0.75, 0.034);
}

TEST(ItemSampler, ChatImagesVaryAroundTheirSizes) {
  const SamplingOptions options = chat_images();
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

}  // namespace
}  // namespace fovea::cli
