// Requests of a random workload: sizes, numbers, limits.
#include "bench/mm_processor/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "errors.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr const char* kRatioFlag = "--random-mm-num-mm-items-range-ratio";
constexpr const char* kLimitFlag = "--random-mm-limit-mm-per-prompt";
constexpr const char* kBucketFlag = "--random-mm-bucket-config";

[[noreturn]] void refuse(const char* flag, const std::string& complaint) {
  throw UsageError(std::string(flag) + ": " + complaint);
}

Modality modality_of(const ItemSize& size) {
  return size.num_frames > 1 ? Modality::kVideo : Modality::kImage;
}

std::optional<std::int64_t> limit_of(const ItemLimits& limits, Modality modality) {
  return modality == Modality::kImage ? limits.images : limits.videos;
}

bool occurs(const std::vector<SizeBucket>& buckets, Modality modality) {
  return std::any_of(buckets.begin(), buckets.end(), [&](const SizeBucket& bucket) {
    return modality_of(bucket.size) == modality;
  });
}

void check_limits_name_all(const std::vector<SizeBucket>& buckets, const ItemLimits& limits) {
  for (const Modality modality : {Modality::kImage, Modality::kVideo}) {
    if (!occurs(buckets, modality) || limit_of(limits, modality)) continue;
    refuse(kBucketFlag, std::string("a bucket holds ") + to_string(modality) + "s, but " +
                            kLimitFlag + " has no \"" + to_string(modality) + "\"");
  }
}

/// Drops buckets that never occur.
std::vector<SizeBucket> likely_buckets(std::vector<SizeBucket> buckets) {
  for (const SizeBucket& bucket : buckets) {
    if (bucket.probability >= 0) continue;
    refuse(kBucketFlag, "expected probabilities >= 0, got " + fixed(bucket.probability, 3));
  }
  std::erase_if(buckets, [](const SizeBucket& bucket) { return bucket.probability == 0; });
  if (buckets.empty()) refuse(kBucketFlag, "expected a probability above 0, got none");
  return buckets;
}

/// Index of a bucket, drawn in proportion to `weights`; one of them is above 0.
std::size_t draw(std::span<const double> weights, Random& random) {
  double left = random.uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
  std::size_t last = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0) continue;
    if (left < weights[i]) return i;
    left -= weights[i];
    last = i;  // rounding may leave a little after all have been passed
  }
  return last;
}

std::int64_t jittered(std::int64_t side, std::int64_t percent, Random& random) {
  if (percent == 0) return side;
  return std::max<std::int64_t>(1, side * random.between(100 - percent, 100 + percent) / 100);
}

}  // namespace

ItemSampler::ItemSampler(SamplingOptions options) : options_(std::move(options)) {
  const double ratio = options_.range_ratio;
  if (!(ratio >= 0 && ratio <= 1)) {
    refuse(kRatioFlag, "expected a number from 0 to 1, got " + fixed(ratio, 3));
  }
  check_limits_name_all(options_.buckets, options_.limits);
  options_.buckets = likely_buckets(std::move(options_.buckets));

  std::int64_t most = 0;
  for (const Modality modality : {Modality::kImage, Modality::kVideo}) {
    if (occurs(options_.buckets, modality)) most += *limit_of(options_.limits, modality);
  }
  const auto items = static_cast<double>(options_.items_per_request);
  const double low = std::max(0.0, std::floor(items * (1 - ratio)));
  const double high = std::min(static_cast<double>(most), std::ceil(items * (1 + ratio)));
  if (low > high) {
    refuse(kLimitFlag, "a request has at least " + fixed(low, 0) + " items, but the limits allow " +
                           std::to_string(most));
  }
  min_items_ = static_cast<std::int64_t>(low);
  max_items_ = static_cast<std::int64_t>(high);
}

std::vector<ItemSize> ItemSampler::request(Random& random) const {
  const auto count = static_cast<std::size_t>(random.between(min_items_, max_items_));
  std::vector<double> weights;
  for (const SizeBucket& bucket : options_.buckets) weights.push_back(bucket.probability);
  std::array<std::int64_t, 2> drawn{};  // by modality

  std::vector<ItemSize> sizes;
  while (sizes.size() < count) {
    const ItemSize& size = options_.buckets[draw(weights, random)].size;
    const Modality modality = modality_of(size);
    std::int64_t& number = drawn[static_cast<std::size_t>(modality)];
    if (number == *limit_of(options_.limits, modality)) {
      for (std::size_t i = 0; i < weights.size(); ++i) {
        if (modality_of(options_.buckets[i].size) == modality) weights[i] = 0;
      }
      continue;
    }
    ++number;
    sizes.push_back({.width_px = jittered(size.width_px, options_.jitter_percent, random),
                     .height_px = jittered(size.height_px, options_.jitter_percent, random),
                     .num_frames = size.num_frames,
                     .modality = modality});
  }
  return sizes;
}

SamplingOptions chat_images() {
  SamplingOptions options;
  options.buckets = {
      {{1920, 1080, 1}, 0.06}, {{1440, 900, 1}, 0.06}, {{1280, 720, 1}, 0.10},  // desktops
      {{828, 1792, 1}, 0.05},  {{720, 1280, 1}, 0.07},                          // phones
      {{1024, 768, 1}, 0.14},  {{768, 1024, 1}, 0.12},                          // photos
      {{1024, 1024, 1}, 0.10}, {{800, 600, 1}, 0.10},  {{640, 480, 1}, 0.08},   // the web
      {{512, 512, 1}, 0.08},   {{256, 256, 1}, 0.04},
  };
  options.jitter_percent = 15;
  return options;
}

}  // namespace fovea::cli
