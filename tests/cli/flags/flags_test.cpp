#include "flags/flags.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "cli/expect_usage_error.h"

namespace fovea::cli {
namespace {

TEST(EngineFlags, DefaultsAreTheDefaultsOfTheLibrary) {
  Console console;
  const EngineOptions options = engine_options(EngineFlags{}, console);
  const EngineOptions library;
  EXPECT_EQ(options.device, library.device);
  EXPECT_EQ(options.data_parallel_size, library.data_parallel_size);
  EXPECT_EQ(options.num_threads, library.num_threads);
  EXPECT_EQ(options.max_num_batched_tokens, library.max_num_batched_tokens);
  EXPECT_EQ(options.packing, library.packing);
  EXPECT_EQ(options.attention, library.attention);
  EXPECT_EQ(options.quantization, library.quantization);
  EXPECT_EQ(options.gpu_wait, library.gpu_wait);
  EXPECT_EQ(options.measure_graphs, library.measure_graphs);
  EXPECT_EQ(options.cache_dir, library.cache_dir);
  EXPECT_EQ(options.media.image_backend, library.media.image_backend);
  EXPECT_EQ(options.media.profile, library.media.profile);
  EXPECT_EQ(options.media.limits.max_image_pixels, library.media.limits.max_image_pixels);
  EXPECT_EQ(options.media.min_pixels, library.media.min_pixels);
  EXPECT_EQ(options.graphs.cudagraph_mm_encoder, library.graphs.cudagraph_mm_encoder);
  EXPECT_TRUE(options.graphs.encoder_cudagraph_token_budgets.empty());
  EXPECT_EQ(options.log, &console);
}

/// An environment variable with another value, or none, for one test.
class Variable {
 public:
  explicit Variable(const char* name) : name_(name) {
    if (const char* const value = std::getenv(name)) before_ = value;
  }
  ~Variable() { set(before_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

  void set(const std::optional<std::string>& value) const {
    value ? ::setenv(name_, value->c_str(), 1) : ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

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
  EXPECT_EQ(user_cache_dir(), "none");
}

TEST(EngineFlags, NoneKeepsNothing) {
  Console console;
  EngineFlags flags;
  flags.cache_dir = "somewhere";
  EXPECT_EQ(engine_options(flags, console).cache_dir, "somewhere");
  flags.cache_dir = "none";
  EXPECT_EQ(engine_options(flags, console).cache_dir, "");
}

TEST(EngineFlags, WinOverTheCompilationConfig) {
  Console console;
  EngineFlags flags;
  flags.token_budgets = {128};
  flags.max_items_per_batch = 2;
  flags.max_frames_per_batch = 4;
  flags.enforce_eager = true;
  flags.compilation_config = R"({"cudagraph_mm_encoder": true,
      "encoder_cudagraph_token_budgets": [64],
      "encoder_cudagraph_max_vision_items_per_batch": 8,
      "encoder_cudagraph_max_frames_per_batch": 16})";
  const GraphOptions graphs = engine_options(flags, console).graphs;
  EXPECT_FALSE(graphs.cudagraph_mm_encoder);
  EXPECT_EQ(graphs.encoder_cudagraph_token_budgets, (std::vector<std::int64_t>{128}));
  EXPECT_EQ(graphs.encoder_cudagraph_max_vision_items_per_batch, 2);
  EXPECT_EQ(graphs.encoder_cudagraph_max_frames_per_batch, 4);
}

TEST(EngineFlags, ZeroItemsPerBatchInferThemWhateverTheCompilationConfigSays) {
  Console console;
  EngineFlags flags;
  flags.compilation_config = R"({"encoder_cudagraph_max_vision_items_per_batch": 8})";
  const auto items = [&] {
    return engine_options(flags, console).graphs.encoder_cudagraph_max_vision_items_per_batch;
  };
  EXPECT_EQ(items(), 8);
  flags.max_items_per_batch = 0;
  EXPECT_EQ(items(), 0);
}

TEST(EngineFlags, BudgetsHaveAMaximum) {
  CLI::App verb;
  EngineFlags flags;
  add_engine_flags(verb, flags);
  verb.parse("--token-budgets 64," + std::to_string(kMaxTokenBudget));
  EXPECT_EQ(flags.token_budgets, (std::vector<std::int64_t>{64, kMaxTokenBudget}));
  test::expect_usage_error("--token-budgets: expected a whole number from 1 to 16777216", [&] {
    verb.parse("--token-budgets 64," + std::to_string(kMaxTokenBudget + 1));
  });
}

TEST(EngineFlags, BudgetsMayBeGivenByPath) {
  CLI::App verb;
  EngineFlags flags;
  add_engine_flags(verb, flags);
  const auto graphs_of = [&](const std::string& text) {
    verb.parse(std::vector<std::string>{text, "--token-budgets"});  // from the last to the first
    flags.compilation_config = R"({"encoder_cudagraph_token_budgets": {"local": [200]}})";
    Console console;
    return engine_options(flags, console).graphs;
  };
  const GraphOptions by_path = graphs_of(R"({"global": [272, 544], "local": [100]})");
  EXPECT_TRUE(by_path.encoder_cudagraph_token_budgets.empty());
  EXPECT_EQ(
      by_path.encoder_cudagraph_path_token_budgets,
      (std::map<std::string, std::vector<std::int64_t>>{{"global", {272, 544}}, {"local", {100}}}));
  const GraphOptions common = graphs_of("64");
  EXPECT_EQ(common.encoder_cudagraph_token_budgets, std::vector<std::int64_t>{64});
  EXPECT_TRUE(common.encoder_cudagraph_path_token_budgets.empty());
  const GraphOptions json = graphs_of("[64, 256]");
  EXPECT_EQ(json.encoder_cudagraph_token_budgets, (std::vector<std::int64_t>{64, 256}));
  EXPECT_TRUE(json.encoder_cudagraph_path_token_budgets.empty());
  test::expect_usage_error("--token-budgets: expected a whole number from 1 to 16777216, got 0",
                           [&] { (void)graphs_of("[0]"); });
  test::expect_usage_error("--token-budgets: expected a JSON list, got [64",
                           [&] { (void)graphs_of("[64"); });
  test::expect_usage_error(
      "--token-budgets: local: expected a whole number from 1 to 16777216, got 0",
      [&] { (void)graphs_of(R"({"local": [0]})"); });
  test::expect_usage_error("--token-budgets: local: expected a list, got 100",
                           [&] { (void)graphs_of(R"({"local": 100})"); });
  test::expect_usage_error("--token-budgets: expected a JSON object, got {local",
                           [&] { (void)graphs_of("{local"); });
}

TEST(EngineFlags, ReachTheOptionsTheyName) {
  Console console;
  EngineFlags flags;
  flags.device = "cuda:0,cuda:2";
  flags.data_parallel_size = 2;
  flags.load_format = "dummy";
  flags.media.image_backend = "pil";
  flags.media.profile = "transformers";
  flags.packing = "cost";
  flags.attention = "portable";
  flags.quantization = "fp8";
  flags.gpu_wait = "sleep";
  flags.measure_graphs = false;
  flags.media.min_pixels = 100;
  flags.media.max_pixels = 200;
  const EngineOptions options = engine_options(flags, console);
  EXPECT_EQ(options.device, "cuda:0,cuda:2");
  EXPECT_EQ(options.data_parallel_size, 2);
  EXPECT_TRUE(options.dummy_weights);
  EXPECT_EQ(options.media.image_backend, ImageBackend::kPillow);
  EXPECT_EQ(options.media.profile, MediaProfile::kTransformers);
  EXPECT_EQ(options.packing, PackingPolicy::kCost);
  EXPECT_EQ(options.attention, AttentionBackend::kPortable);
  EXPECT_EQ(options.quantization, Quantization::kFp8);
  flags.quantization = "int8";
  EXPECT_EQ(engine_options(flags, console).quantization, Quantization::kInt8);
  EXPECT_EQ(options.dtype_compute, ComputeDType::kAuto);
  for (const auto& [name, dtype] : {std::pair{"float32", ComputeDType::kFloat32},
                                    std::pair{"bfloat16", ComputeDType::kBFloat16}}) {
    flags.dtype_compute = name;
    EXPECT_EQ(engine_options(flags, console).dtype_compute, dtype) << name;
  }
  EXPECT_EQ(options.gpu_wait, GpuWait::kSleep);
  EXPECT_FALSE(options.measure_graphs);
  EXPECT_EQ(options.media.min_pixels, 100);
  EXPECT_EQ(options.media.max_pixels, 200);
}

}  // namespace
}  // namespace fovea::cli
