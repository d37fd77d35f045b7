// Any text as the buckets of a random workload and, after a line "---", as the limits of a request:
// what is accepted gives requests within the limits.
#include <algorithm>

#include "bench/mm_processor/sampling.h"
#include "errors.h"
#include "fuzz.h"

using fovea::ItemSize;
using fovea::cli::ItemSampler;
using fovea::test::require;

namespace {

void check_requests(const fovea::cli::SamplingOptions& options) {
  const ItemSampler sampler(options);
  fovea::cli::Random random(options.buckets.size());
  const std::vector<ItemSize> request = sampler.request(random);
  require(std::ssize(request) >= sampler.min_items() && std::ssize(request) <= sampler.max_items());
  const auto images = std::ranges::count(request, 1, &ItemSize::num_frames);
  require(images <= options.limits.images.value_or(0));
  require(std::ssize(request) - images <= options.limits.videos.value_or(0));
  for (const ItemSize& size : request) require(size.width_px >= 1 && size.height_px >= 1);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kSeparator = "\n---\n";
  const std::string text(fovea::test::text_of(data, size));
  const std::size_t end = text.find(kSeparator);
  fovea::test::accepts<fovea::cli::UsageError>([&] {
    fovea::cli::SamplingOptions options{.items_per_request = 4, .range_ratio = 0.5};
    if (end != std::string::npos)
      options.limits = fovea::cli::parse_item_limits(text.substr(end + kSeparator.size()));
    options.buckets = fovea::cli::parse_bucket_config(text.substr(0, end));
    check_requests(options);
  });
  return 0;
}
