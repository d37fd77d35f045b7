// Tables of options: that of the library, and one of this test.
#include "fovea/option.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "support/options.h"

namespace fovea {
namespace {

using test::OwnMode;
using test::OwnOptions;

template <class Struct>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  const Struct options{};
  for_each_option(
      options, [&](const auto& option, const auto& /*value*/) { names.emplace_back(option.name); });
  return names;
}

TEST(Option, IsVisitedInTheOrderOfItsTableWithThoseOfParts) {
  EXPECT_EQ(
      names_of<OwnOptions>(),
      (std::vector<std::string>{"mode", "strict", "side", "patience_ms", "tint", "most_bytes"}));
}

TEST(Option, IsFoundByItsMember) {
  EXPECT_EQ(find_option(&OwnOptions::side).name, "side");
  EXPECT_EQ(find_option(&MediaOptions::profile).name, "media_profile");
}

TEST(Option, HasAFlagOfItsNameOrOneOfItsOwn) {
  EXPECT_EQ(flag_of(find_option(&test::OwnLimits::most_bytes)), "--most-bytes");
  EXPECT_EQ(flag_of(find_option(&OwnOptions::patience)), "--patience");
}

TEST(Option, TakesTheNamesOfItsValues) {
  EXPECT_EQ(value_name(OwnMode::kFancy), "fancy");
  EXPECT_EQ(value_named<OwnMode>("fancy"), OwnMode::kFancy);
  EXPECT_EQ(value_named<OwnMode>("fanciest"), std::nullopt);
  EXPECT_EQ(value_names<OwnMode>("|"), "plain|fancy");
}

TEST(Option, TakesShortNamesOfElementTypesThatAreNeverWritten) {
  for (const char* name : {"bf16", "bfloat16"}) {
    EXPECT_EQ(value_named<RowDType>(name), RowDType::kBFloat16);
    EXPECT_EQ(value_named<ComputeDType>(name), ComputeDType::kBFloat16);
  }
  for (const char* name : {"f16", "fp16", "float16"}) {
    EXPECT_EQ(value_named<RowDType>(name), RowDType::kFloat16) << name;
    EXPECT_EQ(value_named<ComputeDType>(name), std::nullopt) << "no GEMM multiplies in it";
  }
  for (const char* name : {"f32", "fp32", "float32"}) {
    EXPECT_EQ(value_named<RowDType>(name), RowDType::kFloat32) << name;
    EXPECT_EQ(value_named<ComputeDType>(name), ComputeDType::kFloat32) << name;
  }
  EXPECT_EQ(value_named<RowDType>("auto"), std::nullopt);
  EXPECT_EQ(value_names<RowDType>(), "float32, bfloat16, float16");
}

TEST(OptionText, IsOneLine) {
  OwnOptions options;
  EXPECT_EQ(test::all_texts(options), (OptionTexts{{"mode", "plain"},
                                                   {"strict", "true"},
                                                   {"side", "default"},
                                                   {"patience_ms", "5"},
                                                   {"tint", "1,2,3"},
                                                   {"most_bytes", "7"}}));
  options.side = 8;
  EXPECT_EQ(option_text(options.side), "8");
  EXPECT_EQ(option_text(0.1), "0.1");
  EXPECT_EQ(option_text(std::vector<std::int64_t>{64, 256}), "64,256");
  EXPECT_EQ(
      option_text(std::map<std::string, std::vector<std::int64_t>>{{"a", {1, 2}}, {"b", {3}}}),
      "a=1,2;b=3");
}

TEST(OptionTexts, HoldWhatHasTheEffect) {
  EXPECT_EQ(option_texts(OwnOptions{}, {RowEffect::kMedia}),
            (OptionTexts{{"mode", "plain"}, {"tint", "1,2,3"}}));
  EXPECT_EQ(option_texts(OwnOptions{}),
            (OptionTexts{{"mode", "plain"}, {"tint", "1,2,3"}, {"side", "default"}}));
}

TEST(OptionTable, NamesEveryOptionOnce) {
  const std::vector<std::string> names = names_of<EngineOptions>();
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
}

/// What a name of two values, or none, would do to all that is made of names.
template <class Enum>
void expect_names_differ() {
  std::set<std::string_view> names(kValueNames<Enum>.begin(), kValueNames<Enum>.end());
  EXPECT_EQ(names.size(), kValueNames<Enum>.size());
  EXPECT_FALSE(names.contains(""));
  EXPECT_FALSE(names.empty());
}

TEST(OptionTable, NamesEveryValueOfAnEnum) {
  EngineOptions options;
  for_each_option(options, []<class Option, class Value>(const Option&, const Value&) {
    if constexpr (std::is_enum_v<Value>) expect_names_differ<Value>();
  });
  EXPECT_EQ(value_name(MediaProfile::kSglang), "sglang");
  EXPECT_EQ(value_name(ImageBackend::kPillow), "pil");
  EXPECT_EQ(value_name(DamagedFrames::kRefuse), "refuse");
  EXPECT_EQ(value_name(PackingPolicy::kCost), "cost");
  EXPECT_EQ(value_name(AttentionBackend::kCudnnOrAuto), "cudnn-or-auto");
  EXPECT_EQ(value_name(GpuWait::kSleep), "sleep");
  EXPECT_EQ(value_name(Quantization::kInt8), "int8");
  EXPECT_EQ(value_name(ComputeDType::kBFloat16), "bfloat16");
  EXPECT_EQ(value_name(RowDType::kFloat16), "float16");
  EXPECT_EQ(value_name(OnError::kSkip), "skip");
}

TEST(OptionTable, ChangesItsOptionsApart) {
  const OptionTexts before = test::all_texts(EngineOptions{});
  test::for_each_change(EngineOptions{}, [&](const std::string& name, const OptionFacts&,
                                             const EngineOptions& changed) {
    OptionTexts after = test::all_texts(changed);
    EXPECT_NE(after[name], before.at(name)) << name;
    after[name] = before.at(name);
    EXPECT_EQ(after, before) << name;
  });
}

}  // namespace
}  // namespace fovea
