#pragma once

#include <array>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "fovea/engine.h"
#include "fovea/option.h"
#include "fovea/options.h"

/// Every option of the library, said once. Flags of the program, keyword arguments of Python, what
/// a server says of itself, keys of rows, fingerprints, manifests and messages to decoder processes
/// are made of these tables. A new option is a member of its struct and an entry here; a new value
/// is an enumerator and a name here.
namespace fovea {

template <>
inline constexpr std::array<std::string_view, 3> kValueNames<RowDType>{"float32", "bfloat16",
                                                                       "float16"};
/// The names of element types that other tools take. Wherever one is read, this is the table.
inline constexpr std::array<ValueAlias, 5> kDTypeAliases{{{"f32", "float32"},
                                                          {"fp32", "float32"},
                                                          {"bf16", "bfloat16"},
                                                          {"f16", "float16"},
                                                          {"fp16", "float16"}}};
template <>
inline constexpr auto kValueAliases<RowDType> = kDTypeAliases;
template <>
inline constexpr std::array<std::string_view, 3> kValueNames<ImageBackend>{"auto", "torchvision",
                                                                           "pil"};
template <>
inline constexpr std::array<std::string_view, 4> kValueNames<MediaProfile>{
    "vllm", "vllm-0.23", "transformers", "sglang"};
template <>
inline constexpr std::array<std::string_view, 2> kValueNames<DamagedFrames>{"skip", "refuse"};
template <>
inline constexpr std::array<std::string_view, 4> kValueNames<PackingPolicy>{"greedy", "greedy-fill",
                                                                            "cost", "units"};
template <>
inline constexpr std::array<std::string_view, 5> kValueNames<AttentionBackend>{
    "auto", "portable", "hopper", "cudnn", "cudnn-or-auto"};
template <>
inline constexpr std::array<std::string_view, 2> kValueNames<PruningMethod>{"evs", "vidcom2"};
template <>
inline constexpr std::array<std::string_view, 3> kValueNames<GpuWait>{"auto", "spin", "sleep"};
template <>
inline constexpr std::array<std::string_view, 3> kValueNames<Quantization>{"none", "fp8", "int8"};
template <>
inline constexpr std::array<std::string_view, 3> kValueNames<ComputeDType>{"auto", "float32",
                                                                           "bfloat16"};
template <>
inline constexpr auto kValueAliases<ComputeDType> = kDTypeAliases;
template <>
inline constexpr std::array<std::string_view, 2> kValueNames<OnError>{"fail", "skip"};

inline constexpr std::string_view kDeviceHeading = "Model and device";
inline constexpr std::string_view kGraphHeading = "Graphs";
inline constexpr std::string_view kMediaHeading = "Images";

namespace detail {
inline constexpr OptionFacts kOfDevice{.heading = kDeviceHeading};
inline constexpr OptionFacts kOfModel{.effect = RowEffect::kModel, .heading = kDeviceHeading};
inline constexpr OptionFacts kOfCache{.heading = kDeviceHeading, .min = 0};
inline constexpr OptionFacts kOfGraphs{.heading = kGraphHeading};
inline constexpr OptionFacts kOfMedia{.heading = kMediaHeading};
inline constexpr OptionFacts kSeldomOfDevice{.heading = kDeviceHeading, .is_seldom = true};
inline constexpr OptionFacts kSeldomOfMedia{.heading = kMediaHeading, .is_seldom = true};
inline constexpr OptionFacts kOfPruning{.effect = RowEffect::kAfterTower, .heading = kMediaHeading};
inline constexpr OptionFacts kOfPixels{.effect = RowEffect::kMedia, .heading = kMediaHeading};
}  // namespace detail

constexpr auto option_table(std::type_identity<MediaLimits>) {
  constexpr std::int64_t kMsPerDay = std::int64_t{1000} * 60 * 60 * 24;
  return std::tuple{
      option("max_image_pixels", &MediaLimits::max_image_pixels,
             "Refuse larger images before decoding them", detail::kOfMedia),
      option("max_image_side_px", &MediaLimits::max_image_side_px,
             "Refuse images with a longer side before decoding them", detail::kSeldomOfMedia),
      option("max_image_bytes", &MediaLimits::max_image_bytes, "Refuse larger encoded images",
             detail::kSeldomOfMedia),
      option("max_video_bytes", &MediaLimits::max_video_bytes, "Refuse larger encoded videos",
             detail::kSeldomOfMedia),
      option("max_video_frames", &MediaLimits::max_video_frames,
             "Refuse videos with more frames after sampling", detail::kOfMedia),
      option("max_frame_pixels", &MediaLimits::max_frame_pixels,
             "Refuse videos with larger frames before decoding them (default: those of images)",
             {.heading = kMediaHeading, .min = 0, .is_seldom = true}),
      option("max_video_pixels", &MediaLimits::max_video_pixels,
             "Refuse videos with more pixels in all sampled frames together, before resizing "
             "(default: any number)",
             {.heading = kMediaHeading, .min = 0, .is_seldom = true}),
      option("max_item_bytes", &MediaLimits::max_item_bytes,
             "Refuse images, and videos by one of their frames, whose decoding would take "
             "more host memory. The file header tells: 3 bytes per pixel, 5 to 11 for a "
             "progressive JPEG, up to 10 for a WebP, a TIFF, an AVIF or a HEIC",
             detail::kSeldomOfMedia),
      option("max_patches_per_item", &MediaLimits::max_patches_per_item,
             "Refuse items that would have more patches after resizing, all frames of a "
             "video together. The time of the tower grows with them, whatever the size of "
             "the file (default: any number)",
             {.heading = kMediaHeading, .min = 0}),
      option("max_patches_at_once", &MediaLimits::max_patches_at_once,
             "Without the limit above: refuse items with more patches, and videos packed by "
             "units with more in one temporal patch. The memory of the tower grows with them",
             detail::kSeldomOfMedia),
      option("max_decode_bytes", &MediaLimits::max_decode_bytes,
             "Host memory that all decoding threads may take together; what does not fit "
             "waits for its turn (default: 448 MiB, or 32 MiB per thread if that is more)",
             detail::kSeldomOfMedia),
      option("decode_deadline_ms", &MediaLimits::decode_deadline,
             "Milliseconds that an item may take from the first byte read to resized "
             "pixels; it fails after them (default: any time)",
             {.heading = kMediaHeading,
              .flag = "--decode-deadline",
              .max = kMsPerDay,
              .is_seldom = true})};
}

constexpr auto option_table(std::type_identity<MediaOptions>) {
  return std::tuple{
      option("image_backend", &MediaOptions::image_backend,
             "Resize arithmetic; auto is what vLLM uses for the model family", detail::kOfPixels),
      option("media_profile", &MediaOptions::profile,
             "Whose loader turns files into pixels. vllm (0.24 and later) turns images "
             "upright by their EXIF data and composites every transparency; vllm-0.23 "
             "does not turn them and composites RGBA only; transformers turns them and "
             "ignores transparency; sglang does neither",
             detail::kOfPixels),
      option("rgba_background_color", &MediaOptions::background,
             "Colour under transparent pixels, each level from 0 to 255; for the profiles "
             "of vLLM",
             {.effect = RowEffect::kMedia, .heading = kMediaHeading, .is_seldom = true}),
      option("min_pixels", &MediaOptions::min_pixels,
             "Enlarge smaller images to this area (default: the checkpoint's)", detail::kOfPixels),
      option("max_pixels", &MediaOptions::max_pixels,
             "Shrink larger images to this area (default: the checkpoint's)", detail::kOfPixels),
      option("jpeg_scaling", &MediaOptions::jpeg_scaling,
             "Decode JPEG files at 1/2, 1/4 or 1/8 of their size where the sides of that "
             "are at least 1.75 times those they are resized to: faster, for rows that "
             "differ a little",
             detail::kOfPixels),
      option("damaged_frames", &MediaOptions::damaged_frames,
             "Encode a video of which some frames cannot be read, because it is damaged "
             "or cut, from the others with a warning, as vLLM does, or refuse it",
             detail::kSeldomOfMedia),
      option_part(&MediaOptions::limits)};
}

constexpr auto option_table(std::type_identity<GraphOptions>) {
  return std::tuple{
      option("cudagraph_mm_encoder", &GraphOptions::cudagraph_mm_encoder,
             "Run everything eagerly, without graphs",
             {.heading = kGraphHeading, .flag = "--enforce-eager"}),
      option("encoder_cudagraph_token_budgets", &GraphOptions::encoder_cudagraph_token_budgets,
             "Token budgets, one graph for each; as JSON a list for each path (default: "
             "inferred from the model)",
             {.heading = kGraphHeading, .flag = "--token-budgets", .max = kMaxTokenBudget}),
      option("encoder_cudagraph_path_token_budgets",
             &GraphOptions::encoder_cudagraph_path_token_budgets, "Token budgets of each path",
             {.heading = kGraphHeading, .flag = "--token-budgets", .max = kMaxTokenBudget}),
      option("encoder_cudagraph_max_vision_items_per_batch",
             &GraphOptions::encoder_cudagraph_max_vision_items_per_batch,
             "Most items in one replay; 0 infers it from the model (default: inferred)",
             {.heading = kGraphHeading,
              .flag = "--max-items-per-batch",
              .min = 0,
              .max = kMaxTokenBudget}),
      option("encoder_cudagraph_max_frames_per_batch",
             &GraphOptions::encoder_cudagraph_max_frames_per_batch,
             "Most attention sequences in a replay with a video: an image is one, a video "
             "one per temporal patch; 0 runs videos eagerly (default: inferred)",
             {.heading = kGraphHeading,
              .flag = "--max-frames-per-batch",
              .min = 0,
              .max = kMaxTokenBudget})};
}

/// Of an engine: `log` alone is no option.
constexpr auto option_table(std::type_identity<EngineOptions>) {
  constexpr std::int64_t kMaxThreads = 1024;
  return std::tuple{
      option("device", &EngineOptions::device,
             "Where the tower runs; several devices share the items of a batch", detail::kOfDevice),
      option("data_parallel_size", &EngineOptions::data_parallel_size,
             "Number of replicas: on the first N GPUs, or on N parts of the CPU (default: "
             "one per device named)",
             detail::kOfDevice),
      option("team_patches", &EngineOptions::team_patches,
             "Patches from which on an image is computed by all replicas together, where a call "
             "leaves the others nothing to do; 0: none is",
             {.heading = kDeviceHeading, .min = 0, .is_seldom = true}),
      option("threads", &EngineOptions::num_threads,
             "CPU threads for math and decoding (default: all this process may use)",
             {.heading = kDeviceHeading, .max = kMaxThreads}),
      option("decode_processes", &EngineOptions::decode_processes,
             "Decode files in N processes of their own: what breaks a decoder costs one "
             "item (default: in this process)",
             detail::kOfDevice),
      option("dummy_weights", &EngineOptions::dummy_weights,
             "dummy needs only config.json and fills the tower with seeded random weights",
             {.effect = RowEffect::kModel, .heading = kDeviceHeading, .flag = "--load-format"}),
      option("seed", &EngineOptions::seed, "Seed of dummy weights (default: 0)",
             {.effect = RowEffect::kModel, .heading = kDeviceHeading, .min = 0, .is_seldom = true}),
      option("vectors", &EngineOptions::vectors,
             "One row for each image, the vector that the model itself makes of it, instead of "
             "the rows of its patches; for encoders for retrieval",
             detail::kOfModel),
      option("normalize_vectors", &EngineOptions::normalize_vectors,
             "Divide such vectors by their L2 norm", detail::kOfModel),
      option("attention", &EngineOptions::attention,
             "Attention kernel of a GPU; auto takes the faster of portable and hopper for "
             "each size, and names of vLLM stand for one of these",
             {.heading = kDeviceHeading, .flag = "--mm-encoder-attn-backend", .is_seldom = true}),
      option("gpu_wait", &EngineOptions::gpu_wait,
             "How threads wait for a GPU: spin takes a whole processor and answers "
             "soonest; sleep leaves it to others and adds some 0.1 ms to a batch; auto "
             "spins, but sleeps while the host is busy",
             detail::kSeldomOfDevice),
      option("sm_budget", &EngineOptions::sm_budget,
             "SMs of each GPU that the tower may occupy, rounded down to what the driver can "
             "set apart (multiples of 8 on Hopper), so that a decoder finds the rest free "
             "(default: all)",
             detail::kOfDevice),
      option("quantization", &EngineOptions::quantization,
             "Multiplies numbers of 8 bits, faster and less precise: fp8 in all blocks "
             "but the first ones, on Hopper only; int8 in all blocks, on CPUs only",
             detail::kOfModel),
      option("dtype_compute", &EngineOptions::dtype_compute,
             "What GEMMs multiply that are not quantized; auto is bfloat16 on a GPU and "
             "float32 on a CPU, beside int8 bfloat16 where that is faster. It is with "
             "AMX, and on AMD with AVX512-BF16",
             detail::kOfModel),
      option("tower", &EngineOptions::tower,
             "Shared library with a tower that is not one of Fovea's, for any architecture; its "
             "code runs in this process (default: the family of the checkpoint)",
             {.effect = RowEffect::kModel,
              .heading = kDeviceHeading,
              .is_path = true,
              .is_seldom = true}),
      option("cache_dir", &EngineOptions::cache_dir,
             "Directory that stores measurements on a GPU for the next start; none stores "
             "nothing",
             {.heading = kDeviceHeading, .is_path = true, .is_seldom = true}),
      option("encoder_cache_bytes", &EngineOptions::encoder_cache_bytes,
             "Keep the rows of items in so many bytes of host memory, so that equal "
             "items are encoded once: 512M, 2Gi; 0: none",
             {.heading = kDeviceHeading, .flag = "--encoder-cache-size", .min = 0}),
      option("encoder_device_cache_size", &EngineOptions::encoder_device_cache_size,
             "Keep such rows in so many bytes of each device, in front of the host's: "
             "512M, 2Gi; 0: none",
             detail::kOfCache),
      option("shared_rows", &EngineOptions::shared_rows,
             "Share rows with other processes: a folder, or redis://HOST:PORT/DB of a Redis or "
             "Valkey server, which the cache asks for what it does not have",
             {.heading = kDeviceHeading, .is_path = true}),
      option("shared_rows_bytes", &EngineOptions::shared_rows_bytes,
             "Bytes of all files in a folder of shared rows together", detail::kSeldomOfDevice),
      option("shared_rows_seconds", &EngineOptions::shared_rows_seconds,
             "How long a Redis server keeps shared rows after they were stored",
             detail::kSeldomOfDevice),
      option_part(&EngineOptions::graphs),
      option("max_num_batched_tokens", &EngineOptions::max_num_batched_tokens,
             "Upper end of inferred token budgets",
             {.heading = kGraphHeading, .max = kMaxTokenBudget, .is_seldom = true}),
      option("packing", &EngineOptions::packing,
             "How items share budgets: smallest first as in vLLM since 0.32, as until "
             "0.31, for the least total cost, or cut into temporal patches and tiles",
             detail::kOfGraphs),
      option("reuse_units", &EngineOptions::reuse_units,
             "With packing by units, encode equal frames and tiles of a call once (default: on)",
             {.heading = kGraphHeading, .is_seldom = true}),
      option("measure_graphs", &EngineOptions::measure_graphs,
             "On a GPU, time every graph and run eagerly where that is faster (default: "
             "on)",
             {.heading = kGraphHeading, .is_seldom = true}),
      option_part(&EngineOptions::media),
      option("video_pruning_rate", &EngineOptions::video_pruning_rate,
             "Part of the rows of a video to drop, by the method below; of the families whose "
             "reference does so. Such videos run eagerly",
             detail::kOfPruning),
      option("video_pruning_method", &EngineOptions::video_pruning_method,
             "Which rows of a video to drop: evs those most like the frame before, vidcom2 "
             "those most like the rest of their frame and of the video",
             detail::kOfPruning)};
}

/// Of a call. What else EncodeOptions holds says where rows go and when the call ends.
constexpr auto option_table(std::type_identity<EncodeOptions>) {
  return std::tuple{option("dtype", &EncodeOptions::dtype, "Element type of the rows",
                           {.effect = RowEffect::kAfterTower}),
                    option("on_error", &EncodeOptions::on_error,
                           "What happens to an item that cannot be read, decoded or planned"),
                    option("enforce_eager", &EncodeOptions::enforce_eager,
                           "Run the call without graphs and without the encoder cache"),
                    option("use_cache", &EncodeOptions::use_cache,
                           "Read and fill the encoder cache, if there is one")};
}

}  // namespace fovea
