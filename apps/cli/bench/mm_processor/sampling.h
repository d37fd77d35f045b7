#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/synthetic.h"
#include "fovea/engine.h"

namespace fovea::cli {

/// A size of images (one frame) or videos (more frames), and how likely it is.
struct SizeBucket {
  ItemSize size;
  double probability = 0;
};

/// Most items of each modality in one request; absent: the modality does not occur.
struct ItemLimits {
  std::optional<std::int64_t> images = 255;
  std::optional<std::int64_t> videos = 1;
};

/// The make-up of requests of random images and videos. The defaults are those of vLLM's
/// random-mm dataset. Source: docs/reference/encoder_graphs.md, "Benchmark requests".
struct SamplingOptions {
  std::int64_t items_per_request = 1;
  double range_ratio = 0;  ///< their number varies between (1 - ratio) and (1 + ratio) times that
  ItemLimits limits;
  std::vector<SizeBucket> buckets = {{{256, 256, 1}, 0.5}, {{1280, 720, 1}, 0.5}};
  std::int64_t jitter_percent = 0;  ///< each side varies by up to this much, independently
};

/// Draws the sizes of the items of requests.
class ItemSampler {
 public:
  /// @throws UsageError for a ratio outside [0, 1], a negative probability, buckets without any
  /// probability, a bucket of a modality without a limit, and limits below the fewest items.
  explicit ItemSampler(SamplingOptions options);

  /// Fewest and most items of a request.
  [[nodiscard]] std::int64_t min_items() const noexcept { return min_items_; }
  [[nodiscard]] std::int64_t max_items() const noexcept { return max_items_; }

  /// Sizes of the items of one request: their number is uniform between min_items() and
  /// max_items(), their buckets follow the probabilities. A draw beyond the
  /// limit of its modality is repeated without the buckets of that modality.
  [[nodiscard]] std::vector<ItemSize> request(Random& random) const;

 private:
  SamplingOptions options_;  // buckets with a probability above 0 only
  std::int64_t min_items_ = 0;
  std::int64_t max_items_ = 0;
};

/// Reads "{(height, width, frames): probability, ...}" as Python or, with the keys in quotes, JSON
/// writes it. @throws UsageError saying what was expected and what came.
[[nodiscard]] std::vector<SizeBucket> parse_bucket_config(const std::string& text);

/// Reads {"image": N, "video": N}. @throws UsageError.
[[nodiscard]] ItemLimits parse_item_limits(const std::string& json_text);

/// Typical sizes of images in a chat: screenshots of phones and desktops, photos, images from the
/// web. They stand in for data sets that cannot be shipped; the shares are chosen, not measured.
[[nodiscard]] SamplingOptions chat_images();

}  // namespace fovea::cli
