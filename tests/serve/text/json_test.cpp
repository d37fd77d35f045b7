#include "serve/text/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "serve/api_error.h"

namespace fovea::serve {
namespace {

using testing::HasSubstr;

template <typename Call>
ApiError json_refusal(Call&& call) {
  try {
    call();
  } catch (const ApiError& error) {
    return error;
  }
  return {0, "nothing was refused", ""};
}

TEST(IsUtf8, TakesWholeCharactersOnly) {
  for (const char* text : {"", "plain", "\xc3\xa9", "\xf0\x9f\x99\x82"}) EXPECT_TRUE(is_utf8(text));
  for (const char* text : {"\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "a\x80"}) {
    EXPECT_FALSE(is_utf8(text)) << text;
  }
}

TEST(ParseJsonObject, ReadsAnObject) {
  const SharedJson json = parse_json_object(R"({"a": [1, {"b": null}]})");
  EXPECT_EQ(json->root().at("a").element(0).as_int(), 1);
}

TEST(ParseJsonObject, RefusesWhatIsNoObject) {
  for (const char* text : {"", "[]", "1", "null", "{", "{\"a\":}", "{} {}", "{\"a\":\"\xff\"}",
                           "nan", "{\"a\":NaN}", "{/**/}"}) {
    EXPECT_EQ(json_refusal([&] { (void)parse_json_object(text); }).code(), "invalid_json") << text;
  }
}

TEST(ParseJsonObject, RefusesAKeyThatIsGivenTwice) {
  EXPECT_THAT(json_refusal([] { (void)parse_json_object(R"({"a":{"b":1,"c":2,"b":3}})"); }).what(),
              HasSubstr("key \"b\" occurs twice"));
  EXPECT_NO_THROW((void)parse_json_object(R"({"a":{"b":1},"b":{"b":2}})"));
}

TEST(ParseJsonObject, TakesNoMoreLevelsThanItSays) {
  const auto nested = [](std::size_t levels) {
    return "{\"a\":" + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}";
  };
  EXPECT_NO_THROW((void)parse_json_object(nested(kBodyLimits.depth)));
  EXPECT_THAT(json_refusal([&] { (void)parse_json_object(nested(kBodyLimits.depth + 1)); }).what(),
              HasSubstr("nested deeper than 32"));
  EXPECT_EQ(json_refusal([&] { (void)parse_json_object(nested(1'000'000)); }).code(),
            "invalid_json");
}

/// "[" + n times `piece` + "0]" as a member of an object.
std::string list_of(const std::string& piece, std::size_t n) {
  std::string text = "{\"a\":[";
  for (std::size_t i = 0; i < n; ++i) text += piece;
  return text + "0]}";
}

TEST(ParseJsonObject, BoundsTheValuesOfABody) {
  EXPECT_NO_THROW((void)parse_json_object(list_of("0,", kBodyLimits.values - 4)));
  for (const char* piece : {"0,", "{},", "[],", "\"\",", "{\"\":0},", "[[[[[0]]]]],"}) {
    const ApiError error =
        json_refusal([&] { (void)parse_json_object(list_of(piece, 1'000'000)); });
    EXPECT_EQ(error.code(), "invalid_json") << piece;
    EXPECT_THAT(error.what(), HasSubstr("more than 100000 values and keys")) << piece;
  }
}

TEST(ParseJsonObject, LeavesTextsInTheBody) {
  const auto body =
      std::make_shared<const std::string>("{\"a\":\"" + std::string(100, 'x') + "\"}");
  const SharedJson json = parse_json_object(*body, body);
  EXPECT_EQ(json->root().at("a").as_text().data(), body->data() + 6);
  EXPECT_EQ(body.use_count(), 2);  // it holds what it refers to
}

/// CPU of this thread in seconds.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// What took 45 minutes for 8 MB takes some 100 ms; the limit leaves room for sanitizers.
TEST(ParseJsonObject, TakesTimeLinearInTheBody) {
  std::string keys = "{\"a\":{";
  for (int i = 0; i < 45'000; ++i) keys += "\"" + std::to_string(i) + "\":0,";
  keys += "\"x\":0}}";
  std::string prefixed = "{\"a\":{";
  for (int i = 0; i < 8'000; ++i)
    prefixed += "\"" + std::string(990, 'k') + std::to_string(i) + "\":0,";
  prefixed += "\"x\":0}}";
  const double begin = cpu_seconds();
  EXPECT_NO_THROW((void)parse_json_object(keys));
  EXPECT_NO_THROW((void)parse_json_object(prefixed));
  EXPECT_NO_THROW((void)parse_json_object(list_of("{},", 90'000)));
  EXPECT_NO_THROW((void)parse_json_object("{\"a\":\"" + std::string(8'000'000, 'x') + "\"}"));
  EXPECT_THROW((void)parse_json_object(list_of("{},", 2'700'000)), ApiError);
  EXPECT_LT(cpu_seconds() - begin, 5.0);
}

}  // namespace
}  // namespace fovea::serve
