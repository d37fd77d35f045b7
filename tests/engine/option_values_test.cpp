// Values of options that only a host in C++ can give: numbers and enumerators that there are not.
#include "engine/option_values.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <limits>
#include <string>

#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

using test::expect_error;

std::string tiny_model() { return test::golden_folder("qwen3_vl", "golden.safetensors"); }

struct OptionCase {
  const char* message;
  std::function<void(EngineOptions&)> change;
};

constexpr std::uint8_t kNoEnumerator = 99;  // no enumerator

TEST(OptionValues, NumbersOutsideOfTheirRangeAreRefusedByName) {
  const OptionCase cases[] = {
      {"threads: expected at least 0, got -1", [](auto& o) { o.num_threads = -1; }},
      {"threads: expected at most 1024, got 2147483647",
       [](auto& o) { o.num_threads = std::numeric_limits<int>::max(); }},
      {"decode_processes: expected at least 0, got -2", [](auto& o) { o.decode_processes = -2; }},
      {"team_patches: expected at least 0, got -1", [](auto& o) { o.team_patches = -1; }},
      {"max_patches_per_item: expected at least 0, got -1",
       [](auto& o) { o.media.limits.max_patches_per_item = -1; }},
      {"max_frame_pixels: expected at least 0, got -3",
       [](auto& o) { o.media.limits.max_frame_pixels = -3; }},
      {"max_video_pixels: expected at least 0, got -3",
       [](auto& o) { o.media.limits.max_video_pixels = -3; }},
      {"decode_deadline_ms: expected at least 0, got -1",
       [](auto& o) { o.media.limits.decode_deadline = std::chrono::milliseconds(-1); }},
      {"decode_deadline_ms: expected at most 86400000, got 9223372036854775807",
       [](auto& o) { o.media.limits.decode_deadline = std::chrono::milliseconds::max(); }},
      {"encoder_cache_bytes: expected at least 0, got -1",
       [](auto& o) { o.encoder_cache_bytes = -1; }},
  };
  for (const OptionCase& one : cases) {
    EngineOptions options{.device = "cpu"};
    one.change(options);
    expect_error(ErrorCode::kInvalidArgument, one.message,
                 [&] { (void)Engine::load(tiny_model(), options); });
  }
}

TEST(OptionValues, EnumeratorsWithoutANameAreRefusedByTheNameOfTheirOption) {
  const OptionCase cases[] = {
      {"packing: expected one of greedy, greedy-fill, cost, units; there is no value of number 99",
       [](auto& o) { o.packing = static_cast<PackingPolicy>(kNoEnumerator); }},
      {"media_profile: expected one of vllm, vllm-0.23, transformers, sglang; ",
       [](auto& o) { o.media.profile = static_cast<MediaProfile>(kNoEnumerator); }},
      {"image_backend: ",
       [](auto& o) { o.media.image_backend = static_cast<ImageBackend>(kNoEnumerator); }},
      {"damaged_frames: ",
       [](auto& o) { o.media.damaged_frames = static_cast<DamagedFrames>(kNoEnumerator); }},
      {"attention: ", [](auto& o) { o.attention = static_cast<AttentionBackend>(kNoEnumerator); }},
      {"gpu_wait: ", [](auto& o) { o.gpu_wait = static_cast<GpuWait>(kNoEnumerator); }},
      {"quantization: ",
       [](auto& o) { o.quantization = static_cast<Quantization>(kNoEnumerator); }},
      {"dtype_compute: ",
       [](auto& o) { o.dtype_compute = static_cast<ComputeDType>(kNoEnumerator); }},
      {"video_pruning_method: ",
       [](auto& o) { o.video_pruning_method = static_cast<PruningMethod>(kNoEnumerator); }},
  };
  for (const OptionCase& one : cases) {
    EngineOptions options{.device = "cpu"};
    one.change(options);
    expect_error(ErrorCode::kInvalidArgument, one.message,
                 [&] { (void)Engine::load(tiny_model(), options); });
  }
}

TEST(OptionValues, WhatLoadsNothingRefusesTheSame) {
  EngineOptions options{.device = "cpu"};
  options.packing = static_cast<PackingPolicy>(kNoEnumerator);
  const std::string model = tiny_model();
  expect_error(ErrorCode::kInvalidArgument, "packing: ", [&] { (void)inspect(model, options); });
  expect_error(ErrorCode::kInvalidArgument, "packing: ", [&] { (void)plan(model, {}, options); });
  expect_error(ErrorCode::kInvalidArgument,
               "packing: ", [&] { (void)largest_item_patches(model, options); });
}

TEST(OptionValues, ThoseOfACallAreRefusedBeforeAnyWork) {
  Engine engine = Engine::load(tiny_model(), {.device = "cpu", .num_threads = 1});
  expect_error(ErrorCode::kInvalidArgument,
               "dtype: expected one of float32, bfloat16, float16; there is no value of number 99",
               [&] {
                 (void)engine.encode(std::span<const MediaItem>{},
                                     {.dtype = static_cast<RowDType>(kNoEnumerator)});
               });
  expect_error(ErrorCode::kInvalidArgument, "on_error: expected one of fail, skip; ", [&] {
    (void)engine.encode(std::span<const MediaItem>{},
                        {.on_error = static_cast<OnError>(kNoEnumerator)});
  });
}

TEST(OptionValues, DefaultsAndEdgesAreTaken) {
  EngineOptions options;
  options.num_threads = 1024;
  options.media.limits.decode_deadline = std::chrono::hours(24);
  options.seed = std::numeric_limits<std::uint64_t>::max();
  options.media.limits.max_video_bytes = std::numeric_limits<std::size_t>::max();
  EXPECT_NO_THROW(check_values(options));
  EXPECT_NO_THROW(check_values(EngineOptions{}));
  EXPECT_NO_THROW(check_values(EncodeOptions{}));
}

}  // namespace
}  // namespace fovea
