#include "flags/flags.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "cli/expect_usage_error.h"

namespace fovea::cli {
namespace {

/// Flags as a command line sets them, its words from the last to the first.
EngineFlags parsed(std::vector<std::string> words) {
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

TEST(EngineFlags, WinOverTheCompilationConfig) {
  Console console;
  EngineFlags flags = parsed({"--enforce-eager", "4", "--max-frames-per-batch", "2",
                              "--max-items-per-batch", "128", "--token-budgets"});
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
  const auto items = [&](EngineFlags flags) {
    flags.compilation_config = R"({"encoder_cudagraph_max_vision_items_per_batch": 8})";
    return engine_options(flags, console).graphs.encoder_cudagraph_max_vision_items_per_batch;
  };
  EXPECT_EQ(items({}), 8);
  EXPECT_EQ(items(parsed({"0", "--max-items-per-batch"})), 0);
}

TEST(EngineFlags, BudgetsHaveAMaximum) {
  CLI::App verb;
  EngineFlags flags;
  add_engine_flags(verb, flags);
  verb.parse("--token-budgets 64," + std::to_string(kMaxTokenBudget));
  EXPECT_EQ(flags.options.graphs.encoder_cudagraph_token_budgets,
            (std::vector<std::int64_t>{64, kMaxTokenBudget}));
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

TEST(EngineFlags, OfDevicesAreListsThatAMachineMayHave) {
  EXPECT_EQ(parsed({"cuda:0, cuda:2", "--device"}).options.device, "cuda:0,cuda:2");
  EXPECT_THROW((void)parsed({"gpu", "--device"}), CLI::ValidationError);
  EXPECT_THROW((void)parsed({"cpu,cuda", "--device"}), CLI::ValidationError);
}

}  // namespace
}  // namespace fovea::cli
