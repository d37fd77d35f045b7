// The settings of a run, for its report.
#include "bench/mm_processor/config_json.h"

#include "fovea/option_table.h"
#include "fovea/option_text.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

/// The number, or null where there is none.
template <class Number>
Json json_or_null(const std::optional<Number>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json engine_json(const EngineFlags& flags) {
  Json json = Json::object();
  EngineOptions options = flags.options;
  options.graphs.cudagraph_mm_encoder = !flags.enforce_eager;
  add_options(json, options);
  json["attention"] = flags.attention;
  json["compilation_config"] = flags.compilation_config;
  json["tensor_parallel_size"] = flags.vllm.tensor_parallel_size;
  json["mm_encoder_tp_mode"] = flags.vllm.mm_encoder_tp_mode;
  json["limit_mm_per_prompt"] = flags.vllm.limit_mm_per_prompt;
  json["max_model_len"] = flags.vllm.max_model_len;
  return json;
}

Json buckets_json(const std::vector<SizeBucket>& buckets) {
  Json json = Json::array();
  for (const SizeBucket& bucket : buckets) {
    json.push_back({{"height", bucket.size.height_px},
                    {"width", bucket.size.width_px},
                    {"frames", bucket.size.num_frames},
                    {"probability", bucket.probability}});
  }
  return json;
}

}  // namespace

Json config_json(const MmFlags& flags) {
  Json json = {{"model", flags.engine.model},
               {"num_prompts", flags.num_prompts},
               {"num_warmups", flags.num_warmups.value_or(1)},
               {"seed", flags.seed()},
               {"dataset_name", flags.dataset_name},
               {"dtype", flags.dtype},
               {"attention", flags.engine.attention},
               {"media_profile", value_name(flags.engine.options.media.profile)},
               {"jpeg_scaling", flags.engine.options.media.jpeg_scaling},
               {"max_concurrency", flags.arrivals.max_concurrency},
               {"request_rate", nullptr},
               {"video_pruning_rate", flags.engine.options.video_pruning_rate},
               {"host_load", flags.host_load}};
  if (flags.arrivals.per_second > 0) json["request_rate"] = flags.arrivals.per_second;
  if (flags.random()) {
    json["items_per_request"] = flags.sampling.items_per_request;
    json["items_range_ratio"] = flags.sampling.range_ratio;
    json["items_limits"] = {{"image", json_or_null(flags.sampling.limits.images)},
                            {"video", json_or_null(flags.sampling.limits.videos)}};
    json["buckets"] = buckets_json(flags.sampling.buckets);
    json["jitter_percent"] = flags.sampling.jitter_percent;
    json["encoded"] = flags.encoded;
  } else {
    json["dataset_path"] = flags.dataset_path;
    if (flags.from_hub()) {
      json["hf_name"] = flags.hub.hf_name;
      json["hf_subset"] = flags.hub.subset;
      json["hf_split"] = flags.hub.split;
    }
  }
  json["engine"] = engine_json(flags.engine);
  return json;
}

}  // namespace fovea::cli
