#include "flags/flags.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "cli/environment.h"

namespace fovea::cli {
namespace {

using test::Variable;

/// Flags as a command line sets them, its words from the last to the first.
EngineFlags engine_flags(std::vector<std::string> words) {
  CLI::App verb;
  EngineFlags flags;
  add_engine_flags(verb, flags);
  verb.parse(words);
  return flags;
}

TEST(EngineFlags, WriteToTheConsole) {
  Console console;
  EXPECT_EQ(engine_options(EngineFlags{}, console).log, &console);
}

TEST(UserCacheDir, FollowsTheXdgSpecification) {
  const Variable caches("XDG_CACHE_HOME");
  const Variable home("HOME");
  home.set("/home/me");
  caches.set("/caches");
  EXPECT_EQ(user_cache_dir(), "/caches/fovea");
  for (const auto& unusable : {std::optional<std::string>(), {""}, {"relative"}}) {
    caches.set(unusable);
    EXPECT_EQ(user_cache_dir(), "/home/me/.cache/fovea");
  }
  home.set(std::nullopt);
  EXPECT_EQ(user_cache_dir(), "");
}

TEST(EngineFlags, NoneKeepsNothing) {
  CLI::App verb;
  EngineFlags flags;
  flags.options.cache_dir = "somewhere";
  add_engine_flags(verb, flags);
  EXPECT_EQ(verb.get_option("--cache-dir")->get_default_str(), "somewhere");
  verb.parse("--cache-dir none");
  EXPECT_EQ(flags.options.cache_dir, "");
}

TEST(RowDTypeFlag, TakesShortNamesAndHoldsFullOnes) {
  for (const auto& [given, full] : {std::pair("bf16", "bfloat16"), std::pair("fp16", "float16"),
                                    std::pair("f32", "float32"), std::pair("float16", "float16")}) {
    CLI::App verb;
    std::string dtype;
    add_row_dtype(verb, dtype, "");
    verb.parse(std::string("--dtype ") + given);
    EXPECT_EQ(dtype, full);
  }
  CLI::App verb;
  std::string dtype;
  add_row_dtype(verb, dtype, "");
  EXPECT_THROW(verb.parse("--dtype fp8"), CLI::ValidationError);
}

TEST(EngineFlags, TakeShortNamesOfElementTypes) {
  EXPECT_EQ(engine_flags({"bf16", "--dtype-compute"}).options.dtype_compute,
            ComputeDType::kBFloat16);
  EXPECT_THROW((void)engine_flags({"f16", "--dtype-compute"}), CLI::ValidationError);
}

TEST(EngineFlags, OfGraphsSetTheirOptions) {
  Console console;
  const EngineFlags flags = engine_flags({"--enforce-eager", "4", "--max-frames-per-batch", "0",
                                          "--max-items-per-batch", "[64,128]", "--token-budgets"});
  const GraphOptions graphs = engine_options(flags, console).graphs;
  EXPECT_FALSE(graphs.cudagraph_mm_encoder);
  EXPECT_EQ(graphs.encoder_cudagraph_token_budgets, (std::vector<std::int64_t>{64, 128}));
  EXPECT_EQ(graphs.encoder_cudagraph_max_vision_items_per_batch, 0);
  EXPECT_EQ(graphs.encoder_cudagraph_max_frames_per_batch, 4);
  EXPECT_TRUE(engine_flags({}).options.graphs.cudagraph_mm_encoder);
}

TEST(EngineFlags, OfDevicesAreListsThatAMachineMayHave) {
  EXPECT_EQ(engine_flags({"cuda:0, cuda:2", "--device"}).options.device, "cuda:0,cuda:2");
  EXPECT_THROW((void)engine_flags({"gpu", "--device"}), CLI::ValidationError);
  EXPECT_THROW((void)engine_flags({"cpu,cuda", "--device"}), CLI::ValidationError);
}

}  // namespace
}  // namespace fovea::cli
