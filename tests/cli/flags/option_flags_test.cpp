#include "flags/option_flags.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <sstream>

#include "cli/expect_usage_error.h"
#include "flags/cache_size.h"
#include "flags/flags.h"
#include "support/options.h"

namespace fovea::cli {
namespace {

using fovea::test::all_texts;
using fovea::test::OwnMode;
using fovea::test::OwnOptions;

EngineOptions options_of_words(std::vector<std::string> words) {
  CLI::App verb;
  EngineFlags flags;
  add_threads(verb, flags);
  add_decode_processes(verb, flags);
  add_encoder_cache_size(verb, flags.options);
  add_engine_flags(verb, flags);
  std::ranges::reverse(words);  // as CLI11 wants them
  verb.parse(words);
  Console console;
  return engine_options(flags, console);
}

/// What of the options of media a line of flags sets.
MediaOptions parsed(const std::string& line) {
  std::istringstream words(line);
  return options_of_words({std::istream_iterator<std::string>(words), {}}).media;
}

/// The text of a flag that takes other words than the value of its option.
const std::map<std::string, std::string> kOwnWords{
    {"dummy_weights", "dummy"},
    {"encoder_cache_bytes", "1B"},
    {"encoder_device_cache_size", "1B"},
    {"shared_rows_bytes", "68719476737B"},
    {"encoder_cudagraph_path_token_budgets", R"({"path": [64, 128]})"}};

/// The flag that gives an option this value.
template <class Option, class Value>
std::vector<std::string> words_of(const Option& option, const Value& value) {
  const std::string flag = flag_of(option);
  if (const auto own = kOwnWords.find(std::string(option.name)); own != kOwnWords.end()) {
    return {flag, own->second};
  }
  if constexpr (std::is_same_v<Value, bool>) {
    const bool turns_on = value || option.name == "cudagraph_mm_encoder";
    return {turns_on ? flag : "--no-" + flag.substr(2)};
  } else {
    return {flag, option_text(value)};
  }
}

TEST(OptionFlags, SetEveryOptionAndNoOther) {
  fovea::test::for_each_change(
      EngineOptions{}, [](const std::string& name, const OptionFacts&, EngineOptions changed) {
        std::vector<std::string> words;
        for_each_option(changed, [&](const auto& option, const auto& value) {
          if (option.name == name) words = words_of(option, value);
        });
        EXPECT_EQ(all_texts(options_of_words(words)), all_texts(changed)) << name;
      });
}

TEST(OptionFlags, OfNothingAreTheDefaultsOfTheLibrary) {
  EXPECT_EQ(all_texts(options_of_words({})), all_texts(EngineOptions{}));
}

TEST(OptionFlags, NeedNothingButATable) {
  CLI::App verb;
  OwnOptions options;
  GivenOptions given;
  add_option_flags(verb, options, given);
  verb.parse("--mode fancy --no-strict --side 9 --patience 8 --tint 0,0,9 --most-bytes 4");
  EXPECT_EQ(options.mode, OwnMode::kFancy);
  EXPECT_FALSE(options.strict);
  EXPECT_EQ(options.side, 9);
  EXPECT_EQ(options.patience, std::chrono::milliseconds(8));
  EXPECT_EQ(options.tint[2], 9);
  EXPECT_EQ(options.limits.most_bytes, 4U);
  EXPECT_EQ(given, (GivenOptions{"mode", "strict", "side", "patience_ms", "tint", "most_bytes"}));
  test::expect_usage_error("--side: expected a whole number from 1 to 9999, got",
                           [&] { verb.parse("--side 10000"); });
  EXPECT_THROW(verb.parse("--mode fanciest"), CLI::ValidationError);
}

TEST(OptionFlags, ShowValuesAndDefaults) {
  CLI::App verb;
  OwnOptions options;
  GivenOptions given;
  add_option_flags(verb, options, given);
  EXPECT_EQ(verb.get_option("--mode")->get_type_name(), "plain|fancy");
  EXPECT_EQ(verb.get_option("--mode")->get_default_str(), "plain");
  EXPECT_EQ(verb.get_option("--mode")->get_description(), "How");
  EXPECT_EQ(verb.get_option("--patience")->get_type_name(), "MS");
  EXPECT_EQ(verb.get_option("--side")->get_default_str(), "");
  EXPECT_EQ(verb.get_option("--tint")->get_default_str(), "1,2,3");
}

TEST(OptionFlags, LeaveAFlagThatIsThereAsItIs) {
  CLI::App verb;
  OwnOptions options;
  GivenOptions given;
  std::string mode;
  verb.add_option("--mode", mode);
  add_option_flags(verb, options, given, {"side"});
  verb.parse("--mode anything");
  EXPECT_EQ(mode, "anything");
  EXPECT_EQ(verb.get_option_no_throw("--side"), nullptr);
}

TEST(OptionFlags, TakePartsBelowOne) {
  EXPECT_EQ(parse_part("0.75", "--x"), 0.75);
  for (const char* part : {"1", "-0.5", "half"}) {
    test::expect_usage_error("--x: expected", [&] { (void)parse_part(part, "--x"); });
  }
}

TEST(MediaFlags, TakeABackground) {
  const MediaOptions white = parsed("--media-profile vllm-0.23");
  EXPECT_EQ(white.background[0], 255);
  const MediaOptions options = parsed("--rgba-background-color 0,128,255");
  EXPECT_EQ(options.background[0], 0);
  EXPECT_EQ(options.background[1], 128);
  EXPECT_EQ(options.background[2], 255);
}

TEST(MediaFlags, RefuseWhatIsNoColour) {
  for (const char* text : {"white", "1,2", "1,2,3,4"}) {
    test::expect_usage_error(std::string("--rgba-background-color: expected R,G,B, got \"") + text,
                             [&] { (void)parsed(std::string("--rgba-background-color ") + text); });
  }
  test::expect_usage_error("--rgba-background-color: expected a whole number from 0 to 255, got",
                           [] { (void)parsed("--rgba-background-color 0,0,256"); });
}

TEST(MediaFlags, RefuseABackgroundThatTheProfileDoesNotUse) {
  test::expect_usage_error(
      "--rgba-background-color: --media-profile sglang ignores transparency",
      [] { (void)parsed("--media-profile sglang --rgba-background-color 0,0,0"); });
}

TEST(MediaFlags, AllThreadsNeedTheMemoryOfOneItem) {
  EXPECT_EQ(parsed("--max-item-bytes 1000 --max-decode-bytes 1000").limits.max_decode_bytes, 1000u);
  test::expect_usage_error("--max-decode-bytes: expected at least --max-item-bytes, 1000, got 999",
                           [] { (void)parsed("--max-item-bytes 1000 --max-decode-bytes 999"); });
}

TEST(MediaFlags, ADeadlineIsAtMostADay) {
  EXPECT_EQ(parsed("--decode-deadline 86400000").limits.decode_deadline, std::chrono::hours(24));
  for (const char* const text : {"0", "86400001", "1.5"})
    test::expect_usage_error("--decode-deadline: expected a whole number from 1 to 86400000, got",
                             [&] { (void)parsed(std::string("--decode-deadline ") + text); });
}

}  // namespace
}  // namespace fovea::cli
