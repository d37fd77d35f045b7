// The settings of a run, for its report.
#include "bench/mm_processor/mm_flags.h"

#include "fovea/option_table.h"
#include "fovea/option_text.h"

namespace fovea::cli {
namespace {

/// Options under their names.
JsonObject engine_json(const EngineOptions& options) {
  JsonObject json;
  for_each_option(options, [&](const auto& option, const auto& value) {
    json.set(option.name, plain_value(value));
  });
  return json;
}

JsonArray buckets_json(const std::vector<SizeBucket>& buckets) {
  JsonArray json;
  for (const SizeBucket& bucket : buckets) {
    json.add(JsonObject{{"height", bucket.size.height_px},
                        {"width", bucket.size.width_px},
                        {"frames", bucket.size.num_frames},
                        {"probability", bucket.probability}});
  }
  return json;
}

}  // namespace

JsonObject config_json(const MmFlags& flags) {
  std::optional<double> rate;
  if (flags.arrivals.per_second > 0) rate = flags.arrivals.per_second;
  JsonObject json = {{"model", flags.engine.model},
                     {"num_prompts", flags.num_prompts},
                     {"num_warmups", flags.num_warmups.value_or(1)},
                     {"seed", flags.seed()},
                     {"dataset_name", flags.dataset_name},
                     {"dtype", flags.dtype},
                     {"attention", value_name(flags.engine.options.attention)},
                     {"media_profile", value_name(flags.engine.options.media.profile)},
                     {"jpeg_scaling", flags.engine.options.media.jpeg_scaling},
                     {"max_concurrency", flags.arrivals.max_concurrency},
                     {"request_rate", rate},
                     {"video_pruning_rate", flags.engine.options.video_pruning_rate},
                     {"max_images_per_prompt", flags.max_images},
                     {"max_videos_per_prompt", flags.max_videos},
                     {"host_load", flags.host_load}};
  if (flags.random()) {
    json.set("items_per_request", flags.sampling.items_per_request);
    json.set("items_range_ratio", flags.sampling.range_ratio);
    json.set("items_limits", JsonObject{{"image", flags.sampling.limits.images},
                                        {"video", flags.sampling.limits.videos}});
    json.set("buckets", buckets_json(flags.sampling.buckets));
    json.set("jitter_percent", flags.sampling.jitter_percent);
    json.set("encoded", flags.encoded);
  } else {
    json.set("dataset_path", flags.dataset_path);
    if (flags.from_hub()) {
      json.set("hf_name", flags.hub.hf_name);
      json.set("hf_subset", flags.hub.subset);
      json.set("hf_split", flags.hub.split);
    }
  }
  json.set("engine", engine_json(flags.engine.options));
  return json;
}

}  // namespace fovea::cli
