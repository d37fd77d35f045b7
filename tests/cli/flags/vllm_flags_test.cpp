#include "flags/vllm_flags.h"

#include <gtest/gtest.h>

#include "cli/expect_usage_error.h"
#include "flags/flags.h"

namespace fovea::cli {
namespace {

using test::expect_usage_error;

/// What the engine is asked for with these flags of vLLM.
EngineOptions options_of(const VllmFlags& vllm, EngineFlags flags = {}) {
  Console console;
  flags.vllm = vllm;
  return engine_options(flags, console);
}

TEST(VllmFlags, DefaultsChangeNothing) {
  const EngineOptions options = options_of({});
  EXPECT_EQ(options.data_parallel_size, EngineOptions{}.data_parallel_size);
  EXPECT_EQ(options.max_num_batched_tokens, EngineOptions{}.max_num_batched_tokens);
  EXPECT_FALSE(options.graphs.encoder_cudagraph_max_frames_per_batch);
}

TEST(VllmFlags, TensorParallelTowersAreReplicas) {
  EXPECT_EQ(
      options_of({.tensor_parallel_size = 4, .mm_encoder_tp_mode = "data"}).data_parallel_size, 4);
  EXPECT_EQ(options_of({.tensor_parallel_size = 1}).data_parallel_size, 0);
}

TEST(VllmFlags, ATowerIsNotDivided) {
  expect_usage_error(
      "--tensor-parallel-size 2: the tower is not divided; --mm-encoder-tp-mode data",
      [] { (void)options_of({.tensor_parallel_size = 2}); });
}

TEST(VllmFlags, TheNumberOfReplicasIsGivenOnce) {
  expect_usage_error("--tensor-parallel-size and --data-parallel-size both give the number", [] {
    (void)options_of({.tensor_parallel_size = 2, .mm_encoder_tp_mode = "data"},
                     {.options = {.data_parallel_size = 2}});
  });
}

TEST(VllmFlags, VideosThatNoPromptMayHaveNeedNoGraphs) {
  const auto frames = [](const std::string& json) {
    return options_of({.limit_mm_per_prompt = json, .has_prompts = true})
        .graphs.encoder_cudagraph_max_frames_per_batch;
  };
  EXPECT_EQ(frames(R"({"video": 0})"), 0);
  EXPECT_EQ(frames(R"({"image": 3, "video": {"count": 0, "num_frames": 32}})"), 0);
  EXPECT_FALSE(frames(R"({"image": 0, "video": 1})"));
  EXPECT_FALSE(frames(R"({"image": 4})"));
}

TEST(VllmFlags, CommandsWithoutPromptsRefuseLimitsThatChangeNothing) {
  for (const char* idle : {R"({"image": 4})", R"({"image": 0, "video": 0})", R"({"video": 1})"}) {
    expect_usage_error(std::string("--limit-mm-per-prompt: this command has no prompts; expected "
                                   "{\"video\": 0}, which leaves videos out of the graphs, got ") +
                           idle,
                       [idle] { (void)options_of({.limit_mm_per_prompt = idle}); });
  }
  const EngineOptions options = options_of({.limit_mm_per_prompt = R"({"video": 0, "audio": 1})"});
  EXPECT_EQ(options.graphs.encoder_cudagraph_max_frames_per_batch, 0);
}

TEST(VllmFlags, LimitsAreCountsOrObjects) {
  EXPECT_EQ(prompt_limit("", "image"), std::nullopt);
  EXPECT_EQ(prompt_limit(R"({"video": 1})", "image"), std::nullopt);
  EXPECT_EQ(prompt_limit(R"({"image": 2, "video": {"count": 0, "width": 8}})", "image"), 2);
  EXPECT_EQ(prompt_limit(R"({"image": 2, "video": {"count": 0, "width": 8}})", "video"), 0);
}

TEST(VllmFlags, RefuseLimitsThatAreNone) {
  expect_usage_error("--limit-mm-per-prompt: expected a JSON object, got image=1",
                     [] { (void)options_of({.limit_mm_per_prompt = "image=1"}); });
  expect_usage_error("--limit-mm-per-prompt: video: expected a whole number >= 0, got -1",
                     [] { (void)options_of({.limit_mm_per_prompt = R"({"video": -1})"}); });
}

TEST(VllmFlags, ThePromptBoundsInferredBudgets) {
  EXPECT_EQ(options_of({.max_model_len = 4096}).max_num_batched_tokens, 4096);
  EXPECT_EQ(options_of({.max_model_len = 32768}).max_num_batched_tokens,
            EngineOptions{}.max_num_batched_tokens);
}

TEST(VllmFlags, AttentionHasNamesOfBoth) {
  Console console;
  EXPECT_EQ(attention_backend("auto", console), AttentionBackend::kAuto);
  EXPECT_EQ(attention_backend("portable", console), AttentionBackend::kPortable);
  EXPECT_EQ(attention_backend("hopper", console), AttentionBackend::kHopper);
  EXPECT_EQ(attention_backend("cudnn", console), AttentionBackend::kCudnn);
  EXPECT_EQ(attention_backend("cudnn-or-auto", console), AttentionBackend::kCudnnOrAuto);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(attention_backend("FLASH_ATTN", console), AttentionBackend::kAuto);
  EXPECT_EQ(attention_backend("FLASH_ATTN", console), AttentionBackend::kAuto);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "fovea: warning: --mm-encoder-attn-backend FLASH_ATTN stands for auto here\n");
  EXPECT_EQ(attention_backend("FLASHINFER", console), AttentionBackend::kCudnnOrAuto);
  EXPECT_EQ(attention_backend("TORCH_SDPA", console), AttentionBackend::kAuto);
  EXPECT_EQ(attention_backend("TRITON_ATTN", console), AttentionBackend::kPortable);
}

}  // namespace
}  // namespace fovea::cli
