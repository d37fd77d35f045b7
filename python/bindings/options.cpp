#include "options.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "names.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

/// @param name of the option, for messages.
using Set = void (*)(EngineOptions&, nb::handle value, const std::string& name);

constexpr std::array kProfiles{Named<MediaProfile>{"vllm", MediaProfile::kVllm},
                               Named<MediaProfile>{"vllm-0.23", MediaProfile::kVllm023},
                               Named<MediaProfile>{"transformers", MediaProfile::kTransformers},
                               Named<MediaProfile>{"sglang", MediaProfile::kSglang}};
constexpr std::array kBackends{Named<ImageBackend>{"auto", ImageBackend::kModelDefault},
                               Named<ImageBackend>{"torchvision", ImageBackend::kTorchvision},
                               Named<ImageBackend>{"pil", ImageBackend::kPillow}};
constexpr std::array kDamages{Named<DamagedFrames>{"skip", DamagedFrames::kSkip},
                              Named<DamagedFrames>{"refuse", DamagedFrames::kRefuse}};
constexpr std::array kPackings{Named<PackingPolicy>{"greedy", PackingPolicy::kGreedy},
                               Named<PackingPolicy>{"greedy-fill", PackingPolicy::kGreedyFill},
                               Named<PackingPolicy>{"cost", PackingPolicy::kCost}};
constexpr std::array kAttentions{Named<AttentionBackend>{"auto", AttentionBackend::kAuto},
                                 Named<AttentionBackend>{"portable", AttentionBackend::kPortable},
                                 Named<AttentionBackend>{"hopper", AttentionBackend::kHopper},
                                 Named<AttentionBackend>{"cudnn", AttentionBackend::kCudnn}};
constexpr std::array kQuantizations{Named<Quantization>{"none", Quantization::kNone},
                                    Named<Quantization>{"fp8", Quantization::kFp8},
                                    Named<Quantization>{"int8", Quantization::kInt8}};
constexpr std::array kComputeDTypes{Named<ComputeDType>{"auto", ComputeDType::kAuto},
                                    Named<ComputeDType>{"float32", ComputeDType::kFloat32},
                                    Named<ComputeDType>{"bfloat16", ComputeDType::kBFloat16}};
constexpr std::array kWaits{Named<GpuWait>{"auto", GpuWait::kAuto},
                            Named<GpuWait>{"spin", GpuWait::kSpin},
                            Named<GpuWait>{"sleep", GpuWait::kSleep}};

/// Sets a member of the options, or of a part of them.
template <auto kMember, class Part>
void set(Part& part, nb::handle value) {
  part.*kMember = nb::cast<std::remove_cvref_t<decltype(part.*kMember)>>(value);
}

template <auto kMember>
void option(EngineOptions& options, nb::handle value, const std::string& /*name*/) {
  set<kMember>(options, value);
}

template <auto kMember>
void media(EngineOptions& options, nb::handle value, const std::string& /*name*/) {
  set<kMember>(options.media, value);
}

template <auto kMember>
void limit(EngineOptions& options, nb::handle value, const std::string& /*name*/) {
  set<kMember>(options.media.limits, value);
}

template <auto kMember>
void graph(EngineOptions& options, nb::handle value, const std::string& /*name*/) {
  set<kMember>(options.graphs, value);
}

template <auto kMember, const auto& kNames>
void choice(EngineOptions& options, nb::handle value, const std::string& name) {
  options.*kMember = value_named(kNames, nb::cast<std::string>(value), name);
}

template <auto kMember, const auto& kNames>
void media_choice(EngineOptions& options, nb::handle value, const std::string& name) {
  options.media.*kMember = value_named(kNames, nb::cast<std::string>(value), name);
}

void set_background(EngineOptions& options, nb::handle value, const std::string& /*name*/) {
  const auto levels = nb::cast<std::array<std::uint8_t, 3>>(value);
  std::ranges::copy(levels, options.media.background);
}

void set_deadline(EngineOptions& options, nb::handle value, const std::string& name) {
  const auto ms = nb::cast<std::int64_t>(value);
  if (ms < 0)
    throw nb::value_error((name + ": expected at least 0, got " + std::to_string(ms)).c_str());
  options.media.limits.decode_deadline = std::chrono::milliseconds(ms);
}

const std::map<std::string, Set>& setters() {
  static const std::map<std::string, Set> table{
      {"data_parallel_size", option<&EngineOptions::data_parallel_size>},
      {"decode_processes", option<&EngineOptions::decode_processes>},
      {"dummy_weights", option<&EngineOptions::dummy_weights>},
      {"seed", option<&EngineOptions::seed>},
      {"max_num_batched_tokens", option<&EngineOptions::max_num_batched_tokens>},
      {"video_pruning_rate", option<&EngineOptions::video_pruning_rate>},
      {"encoder_cache_size", option<&EngineOptions::encoder_cache_size>},
      {"encoder_cache_bytes", option<&EngineOptions::encoder_cache_bytes>},
      {"encoder_device_cache_size", option<&EngineOptions::encoder_device_cache_size>},
      {"measure_graphs", option<&EngineOptions::measure_graphs>},
      {"cache_dir", option<&EngineOptions::cache_dir>},
      {"packing", choice<&EngineOptions::packing, kPackings>},
      {"attention", choice<&EngineOptions::attention, kAttentions>},
      {"quantization", choice<&EngineOptions::quantization, kQuantizations>},
      {"dtype_compute", choice<&EngineOptions::dtype_compute, kComputeDTypes>},
      {"gpu_wait", choice<&EngineOptions::gpu_wait, kWaits>},
      {"media_profile", media_choice<&MediaOptions::profile, kProfiles>},
      {"image_backend", media_choice<&MediaOptions::image_backend, kBackends>},
      {"rgba_background_color", set_background},
      {"min_pixels", media<&MediaOptions::min_pixels>},
      {"max_pixels", media<&MediaOptions::max_pixels>},
      {"jpeg_scaling", media<&MediaOptions::jpeg_scaling>},
      {"damaged_frames", media_choice<&MediaOptions::damaged_frames, kDamages>},
      {"max_image_pixels", limit<&MediaLimits::max_image_pixels>},
      {"max_image_side_px", limit<&MediaLimits::max_image_side_px>},
      {"max_image_bytes", limit<&MediaLimits::max_image_bytes>},
      {"max_video_bytes", limit<&MediaLimits::max_video_bytes>},
      {"max_video_frames", limit<&MediaLimits::max_video_frames>},
      {"max_item_bytes", limit<&MediaLimits::max_item_bytes>},
      {"max_patches_per_item", limit<&MediaLimits::max_patches_per_item>},
      {"max_decode_bytes", limit<&MediaLimits::max_decode_bytes>},
      {"decode_deadline_ms", set_deadline},
      {"cudagraph_mm_encoder", graph<&GraphOptions::cudagraph_mm_encoder>},
      {"encoder_cudagraph_token_budgets", graph<&GraphOptions::encoder_cudagraph_token_budgets>},
      {"encoder_cudagraph_path_token_budgets",
       graph<&GraphOptions::encoder_cudagraph_path_token_budgets>},
      {"encoder_cudagraph_max_vision_items_per_batch",
       graph<&GraphOptions::encoder_cudagraph_max_vision_items_per_batch>},
      {"encoder_cudagraph_max_frames_per_batch",
       graph<&GraphOptions::encoder_cudagraph_max_frames_per_batch>},
  };
  return table;
}

}  // namespace

EngineOptions engine_options(const nb::dict& given) {
  EngineOptions options;
  for (const auto [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    const auto setter = setters().find(name);
    if (setter == setters().end()) {
      throw nb::type_error(("there is no option \"" + name + "\"").c_str());
    }
    try {
      setter->second(options, value, name);
    } catch (const nb::cast_error&) {
      throw nb::type_error(
          ("option " + name + " cannot be " + nb::cast<std::string>(nb::repr(value))).c_str());
    }
  }
  return options;
}

}  // namespace fovea::python
