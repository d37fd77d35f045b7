#include "flags/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "cli/environment.h"
#include "cli/expect_usage_error.h"
#include "flags/cli11.h"
#include "support/temporary_directory.h"

namespace fovea::cli {
namespace {

using test::Variable;
using testing::ElementsAre;
using testing::HasSubstr;

/// Flags of every kind, and a parser of them.
struct ServerFlags {
  std::int64_t port = 8000;
  std::string host = "here";
  std::vector<std::string> keys;
  bool loud = false;
  std::int64_t threads = 2;
  Configuration configuration;

  void parse(std::vector<std::string> arguments) {
    CLI::App app;
    CLI::App* verb = app.add_subcommand("verb");
    verb->add_option("--port", port)->capture_default_str();
    verb->add_option("-H,--the-host", host)->capture_default_str();
    verb->add_option("--api-key", keys);
    verb->add_flag("--loud,!--quiet", loud);
    verb->add_option("--io-threads", threads)->capture_default_str()->group(seldom("Limits"));
    add_configuration(*verb, configuration, {"api-key"});
    std::ranges::reverse(arguments);
    arguments.emplace_back("verb");
    app.parse(std::move(arguments));
  }

  [[nodiscard]] std::string origin_of(const std::string& flag) const {
    for (const Setting& setting : configuration.settings) {
      if (setting.flag == flag) return setting.origin + " " + setting.value;
    }
    return "not listed";
  }
};

class ConfigurationTest : public testing::Test {
 protected:
  std::string file_with(const std::string& text) {
    std::string path = directory_ / "fovea.json";
    fovea::test::write_text(path, text);
    return path;
  }
  fovea::test::TemporaryDirectory directory_;
};

TEST_F(ConfigurationTest, PrefersWhatIsTypedThenTheEnvironmentThenTheFile) {
  const std::string file = file_with(R"({"port": 3, "the-host": "file", "loud": true})");
  const Variable host("FOVEA_THE_HOST", "environment");
  const Variable port("FOVEA_PORT", "2");
  ServerFlags flags;
  flags.parse({"--config", file, "--port", "1"});
  EXPECT_EQ(flags.port, 1);
  EXPECT_EQ(flags.host, "environment");
  EXPECT_TRUE(flags.loud);
  EXPECT_EQ(flags.origin_of("--port"), "command line 1");
  EXPECT_EQ(flags.origin_of("--the-host"), "FOVEA_THE_HOST environment");
  EXPECT_EQ(flags.origin_of("--loud"), file + " true");
}

TEST_F(ConfigurationTest, TakesFlagsThatHelpLeavesOut) {
  ServerFlags flags;
  flags.parse({"--config", file_with(R"({"io-threads": 3})")});
  EXPECT_EQ(flags.threads, 3);
  EXPECT_THAT(flags.origin_of("--io-threads"), HasSubstr("fovea.json 3"));
  const Variable threads("FOVEA_IO_THREADS", "4");
  ServerFlags others;
  others.parse({"--config", file_with(R"({"io-threads": 3})")});
  EXPECT_EQ(others.origin_of("--io-threads"), "FOVEA_IO_THREADS 4");
  ServerFlags typed;
  typed.parse({"--io-threads", "5"});
  EXPECT_EQ(typed.origin_of("--io-threads"), "command line 5");
}

TEST_F(ConfigurationTest, SaysWhatThereIsInPlaceOfAFlagThatIsNoMore) {
  const std::string file = file_with(R"({"limit-mm-per-prompt": "{}"})");
  test::expect_usage_error(
      "no flag is called limit-mm-per-prompt; its keys are --max-images-per-prompt", [&] {
        ServerFlags().parse({"--config", file});
      });
  const Variable length("FOVEA_MAX_MODEL_LEN", "3");
  test::expect_usage_error(
      "FOVEA_MAX_MODEL_LEN: there is no flag of this name; budgets are bounded by "
      "--max-num-batched-tokens",
      [] { ServerFlags().parse({}); });
}

TEST_F(ConfigurationTest, KeepsDefaultsOfFlagsThatNobodySets) {
  ServerFlags flags;
  flags.parse({});
  EXPECT_EQ(flags.port, 8000);
  EXPECT_EQ(flags.origin_of("--port"), "default 8000");
}

TEST_F(ConfigurationTest, ReadsSectionsCommentsAndUnderscores) {
  const std::string file = file_with("{// where\n\"server\": {\"the_host\": \"a\"}, \"port\": 5}");
  ServerFlags flags;
  flags.parse({"--config", file});
  EXPECT_EQ(flags.host, "a");
  EXPECT_EQ(flags.port, 5);
}

TEST_F(ConfigurationTest, TakesSeveralValues) {
  ServerFlags flags;
  flags.parse({"--config", file_with(R"({"api-key": ["a", "b,c"]})")});
  EXPECT_THAT(flags.keys, ElementsAre("a", "b,c"));
  const Variable keys("FOVEA_API_KEY", "x,y");
  ServerFlags others;
  others.parse({});
  EXPECT_THAT(others.keys, ElementsAre("x", "y"));
}

TEST_F(ConfigurationTest, ShowsNoSecrets) {
  ServerFlags flags;
  flags.parse({"--api-key", "secret"});
  EXPECT_EQ(flags.origin_of("--api-key"), "command line ***");
  EXPECT_THAT(settings_table(flags.configuration.settings), HasSubstr("--port"));
}

TEST_F(ConfigurationTest, SaysWhereAWrongValueStands) {
  const std::string file = file_with(R"({"portt": 3})");
  ServerFlags flags;
  test::expect_usage_error(file + ": no flag is called portt; did you mean port?", [&] {
    flags.parse({"--config", file});
  });
  for (const auto& [text, part] : {std::pair{"{", "line 1, column 2: syntax error"},
                                   {R"({"port": 1, "port": 2})", "occurs twice"},
                                   {"[]", "expected a JSON object"},
                                   {R"({"port": {"a": []}, "a": 1})", "a: given twice"},
                                   {R"({"port": null})", "got null"},
                                   {R"({"port": [1, 2]})", "takes one value, got 2"},
                                   {R"({"port": []})", "--port has an empty list"},
                                   {R"({"loud": []})", "--loud has an empty list"}}) {
    ServerFlags wrong;
    const std::string path = file_with(text);
    test::expect_usage_error(part, [&] { wrong.parse({"--config", path}); });
  }
  const Variable port("FOVEA_PORT", "many");
  ServerFlags wrong;
  test::expect_usage_error("FOVEA_PORT", [&] { wrong.parse({}); });
}

/// 100,000 levels ended the program: writing them into a message took one call after the other.
TEST_F(ConfigurationTest, BoundsWhatAFileHolds) {
  const auto repeated = [](const std::string& part, std::size_t n) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i) text += part;
    return text;
  };
  const std::string deep = repeated("{\"a\":", 100'000) + "1" + repeated("}", 100'000);
  const std::string wide = "{\"port\": [" + repeated("{},", 300'000) + "{}]}";
  const std::string large = "{" + std::string(1 << 20, ' ') + "}";
  for (const auto& [text, part] : {std::pair{deep, "nested deeper than 8 levels"},
                                   {wide, "more than 100000 values and keys"},
                                   {large, "at most 1048576"},
                                   {R"({"port": [[[[]]]]})", "got an array"}}) {
    ServerFlags wrong;
    const std::string path = file_with(text);
    test::expect_usage_error(part, [&] { wrong.parse({"--config", path}); });
  }
}

TEST_F(ConfigurationTest, NamesAFileThatCannotBeRead) {
  ServerFlags flags;
  test::expect_usage_error("/none: no such file", [&] {
    flags.parse({"--config", directory_ / "none"});
  });
}

TEST_F(ConfigurationTest, ReadsRegularFilesOfBoundedSize) {
  const std::string pipe = directory_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, std::string("/dev/zero")}) {
    test::expect_usage_error("--config: " + path + ": not a regular file", [&] {
      ServerFlags().parse({"--config", path});
    });
  }
  const std::string large = file_with(std::string((std::size_t{1} << 20) + 1, ' '));
  test::expect_usage_error("at most 1048576 are read", [&] {
    ServerFlags().parse({"--config", large});
  });
}

}  // namespace
}  // namespace fovea::cli
