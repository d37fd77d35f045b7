#include "flags/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.h"
#include "support/golden.h"

namespace fovea::cli {
namespace {

using fovea::test::golden_folder;

class ModelLimits : public ::testing::Test {
 protected:
  /// Expects that the model refuses `flags_` with a complaint that begins so.
  void expect_refused(const std::string& beginning) {
    const EngineOptions options = engine_options(flags_, console_);
    try {
      check_limits(flags_, options);
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), ::testing::StartsWith(beginning));
      return;
    }
    ADD_FAILURE() << "expected a usage error: " << beginning;
  }

  /// Sets flags by a command line, its words from the last to the first.
  void parse(std::vector<std::string> words) {
    CLI::App verb;
    add_engine_flags(verb, flags_);
    verb.parse(words);
  }

  Console console_;
  EngineFlags flags_{.model = golden_folder("qwen3_vl", "config.json")};
};

TEST_F(ModelLimits, DefaultsAreWithinThem) {
  EXPECT_NO_THROW(check_limits(flags_, engine_options(flags_, console_)));
}

TEST_F(ModelLimits, OfAModelThatIsNotThereNothingIsSaid) {
  flags_.model = "/nonexistent";
  parse({"64", "--token-budgets"});
  EXPECT_NO_THROW(check_limits(flags_, engine_options(flags_, console_)));
}

TEST_F(ModelLimits, AFlagIsNamedAsItWasTyped) {
  parse({"100", "--max-items-per-batch", "64", "--token-budgets"});
  expect_refused("--max-items-per-batch (100) must be <= smallest token budget (64)");
}

TEST_F(ModelLimits, ASettingThatTheComplaintDoesNotNameIsFoundByLeavingItOut) {
  flags_.model = golden_folder("deepseek_ocr", "config.json");
  parse({"64", "--token-budgets"});
  expect_refused("--token-budgets: ");
  parse({R"({"page": [272]})", "--token-budgets"});
  expect_refused(
      "--token-budgets: the paths of this model are \"global\", \"local\", got \"page\"");
  flags_.options.graphs = {};
  flags_.options.max_num_batched_tokens = 64;
  expect_refused("--max-num-batched-tokens: ");
}

}  // namespace
}  // namespace fovea::cli
