// What a JSON text may be, and where a document says that it is none.
#include <gtest/gtest.h>

#include <cmath>
#include <stop_token>
#include <string>

#include "core/check.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

JsonDocument parse_text(std::string_view text) { return JsonDocument::parse(text, "x.json"); }

/// Expects that a text is refused with "x.json: " and `message`.
void expect_refused(std::string_view text, const std::string& message) {
  SCOPED_TRACE(text.substr(0, 100));
  test::expect_error(ErrorCode::kCorruptData, cat("x.json: ", message),
                     [&] { (void)parse_text(text); });
}

TEST(JsonParser, RefusesAKeyAboveTheLimit) {
  const std::string key(kMaxJsonKeyBytes + 1, 'k');
  expect_refused("{\"" + key + "\": 1}", "key of more than 1000 bytes");
}

TEST(JsonParser, RefusesAStringAboveTheLimit) {
  expect_refused("[\"" + std::string(kMaxJsonStringBytes + 1, 's') + "\"]",
                 "string of more than 32000000 bytes");
}

TEST(JsonParser, ReadsNaNAndInfinityAsNull) {
  const JsonDocument document =
      parse_text(R"({"a": NaN, "b": [Infinity, -Infinity, 1], "c": "NaN"})");
  EXPECT_FALSE(document.root().find("a"));
  const auto b = document.root().at("b").elements();
  ASSERT_EQ(b.size(), 3u);
  EXPECT_FALSE(b[0].is_number());
  EXPECT_FALSE(b[1].is_number());
  EXPECT_EQ(b[2].as_int(), 1);
  EXPECT_EQ(document.root().at("c").as_string(), "NaN");
}

TEST(JsonParser, LeavesStringsWithNaNAndQuotesAlone) {
  const JsonDocument document = parse_text(R"({"a\"NaN": "\\", "b": "x\"Infinity"})");
  EXPECT_EQ(document.root().at("a\"NaN").as_string(), "\\");
  EXPECT_EQ(document.root().at("b").as_string(), "x\"Infinity");
}

TEST(JsonParser, PlacesAnErrorBehindNaNWhereItIs) {
  expect_refused("{\"a\": NaN, \"b\": NaN, ?}", "line 1, column 22: ");
}

TEST(JsonParser, LetsTheLastOfEqualKeysWin) {
  const JsonDocument document = parse_text(R"({"a": 1, "b": 2, "a": 3, "a": 4})");
  EXPECT_EQ(document.root().at("a").as_int(), 4);
  EXPECT_EQ(document.root().at("b").as_int(), 2);
  EXPECT_EQ(document.root().keys(), (std::vector<std::string_view>{"b", "a"}));
}

TEST(JsonParser, RefusesEqualKeysWhereAsked) {
  for (const char* text : {R"({"a": 1, "b": 2, "a": 3})", R"([{"c": {"a": 1, "\u0061": 3}}])"}) {
    test::expect_error(ErrorCode::kCorruptData, "x.json: key \"a\" occurs twice",
                       [&] { (void)JsonDocument::parse(text, "x.json", DuplicateKeys::kReject); });
  }
}

TEST(JsonParser, NamesLineAndColumnOfASyntaxError) {
  expect_refused("{\n  \"a\": 1,\n  \"b\" 2\n}", "line 3, column 7: syntax error");
}

TEST(JsonParser, RefusesWhatIsNotJson) {
  expect_refused("", "line 1, column 1: ");
  expect_refused("{\"a\": 1", "line 1, column 8: ");
  expect_refused("[1, 2", "line 1, column 6: ");
  expect_refused("[1 2]", "line 1, column 4: ");
  expect_refused("{} {}", "line 1, column 4: ");
  expect_refused("[1,]", "line 1, column 4: ");
  expect_refused("// comment\n1", "line 1, column ");
  expect_refused("'a'", "line 1, column ");
  expect_refused("NaNa", "line 1, column ");
}

TEST(JsonParser, RefusesTextThatIsNotUtf8) {
  expect_refused("[\"a\xff\"]", "line 1, column 4: ");
  expect_refused("[\"\xc0\x80\"]", "line 1, column 3: ");  // overlong zero
  expect_refused("[\"\\ud800\"]", "line 1, column ");      // half a surrogate pair
}

TEST(JsonParser, RefusesAZeroByteInsteadOfEndingThere) {
  expect_refused(std::string_view("{}\0 garbage", 11), "line 1, column 3: zero byte");
}

TEST(JsonParser, DoesNotQuoteTheTextInSyntaxErrors) {
  try {
    (void)parse_text("{\"token\": secret}");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("secr")));
  }
}

TEST(JsonParser, RefusesANumberBeyondDouble) {
  const std::string zeros(400, '0');
  for (const std::string& number :
       {std::string("1e400"), "-1" + zeros + ".5", "0." + zeros + "1e801",
        std::string("1e99999999999999999999")}) {
    expect_refused("[" + number + "]", "line 1, column ");
  }
}

TEST(JsonParser, ReadsANumberBelowDoubleAsZero) {
  const std::string zeros(400, '0');
  for (const std::string& number :
       {std::string("1e-400"), "-0." + zeros + "1", std::string("0.1e-99999999999999999999"),
        "1" + zeros + "e-800"}) {
    EXPECT_EQ(parse_text(number).root().as_number(), 0.0) << number;
  }
  EXPECT_TRUE(std::signbit(parse_text("-1e-400").root().as_number()));
}

TEST(JsonParser, TakesNumbersAsTheyAreWrittenAlone) {
  for (const char* text : {"01", "+1", ".5", "1.", "1e", "1e+", "-", "0x1", "1_0", "--1", "1.e1"}) {
    expect_refused(text, "line 1, column ");
  }
  EXPECT_EQ(parse_text("-0").root().as_int(), 0);
  EXPECT_EQ(parse_text("1E+2").root().as_number(), 100.0);
  EXPECT_EQ(parse_text("-0.5e-1").root().as_number(), -0.05);
}

TEST(JsonParser, ReadsEveryEscape) {
  EXPECT_EQ(parse_text(R"("\\\"\/\b\f\n\r\t\u0041")").root().as_string(), "\\\"/\b\f\n\r\tA");
  EXPECT_EQ(parse_text(R"("x\u0000y")").root().as_string(), std::string("x\0y", 3));
  EXPECT_EQ(parse_text(R"("\u00e9\u4e16\ud83d\ude00.")").root().as_string(),
            "\xc3\xa9\xe4\xb8\x96\xf0\x9f\x98\x80.");
  for (const char* text :
       {R"("\x")", R"("\u12")", R"("\u12g4")", R"("\ude00")", R"("\ud83d")", R"("\ud83dx")",
        R"("\ud83d\n")", R"("\ud83d\u0041")", "\"\\", "\"\\\"", "\"a\nb\"", "\"a"}) {
    expect_refused(text, "line 1, column ");
  }
}

TEST(JsonParser, TakesEveryCharacterOfUtf8AndNothingElse) {
  const auto is_read = [](const std::string& bytes) {
    try {
      return parse_text("\"" + bytes + "\"").root().as_string() == bytes;
    } catch (const Error&) {
      return false;
    }
  };
  for (const char* text : {"\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                           "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(is_read(text)) << json_quote(text);
  for (const char* text :
       {"\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"})
    EXPECT_FALSE(is_read(text));
}

TEST(JsonParser, KeepsEscapedStringsApart) {
  std::string text = "[\"\\n" + std::string(100'000, 'x') + "\"";
  for (int i = 0; i < 20'000; ++i) text += ",\"\\u0041" + cat(i) + "\"";
  const JsonDocument document = parse_text(text + "]");
  const JsonView root = document.root();
  EXPECT_EQ(root.element(0).as_text().size(), 100'001u);
  for (std::size_t i = 1; i < root.num_elements(); ++i)
    ASSERT_EQ(root.element(i).as_text(), "A" + cat(i - 1));
}

TEST(JsonParser, SkipsTheMarkOfUtf8InFront) {
  EXPECT_EQ(parse_text("\xef\xbb\xbf[1]").root().num_elements(), 1u);
}

TEST(JsonParser, TakesTheDeepestNestingAllowed) {
  const std::string text = std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']');
  EXPECT_TRUE(parse_text(text).root().is_array());
}

TEST(JsonParser, RefusesDeeperNesting) {
  const std::size_t depth = kMaxJsonDepth + 1;
  expect_refused(std::string(depth, '[') + std::string(depth, ']'), "nested deeper than 64");
  expect_refused(std::string(1'000'000, '['), "nested deeper than 64");
}

TEST(JsonParser, RefusesMoreValuesThanTheLimit) {
  std::string text = "[0";
  for (std::size_t i = 0; i < kMaxJsonValues; ++i) text += ",0";
  expect_refused(text + "]", "more than 4000000 values");
}

TEST(JsonParser, RefusesATextAboveTheLimit) {
  expect_refused(std::string(kMaxJsonBytes + 1, ' '), "text has 100000001 bytes");
}

/// Parses a text by rules.
JsonDocument parse_by(const JsonRules& rules, std::string_view text) {
  return JsonDocument::parse_borrowed(text, "body", rules);
}

TEST(JsonRules, BoundWhatATextHolds) {
  const auto refused = [](const JsonLimits& limits, std::string_view text, const char* message) {
    test::expect_error(ErrorCode::kCorruptData, message,
                       [&] { (void)parse_by({.limits = limits}, text); });
  };
  refused({.bytes = 3}, "[12]", "body: text has 4 bytes, at most 3 are read");
  refused({.values = 4}, R"({"a":1,"b":2})", "body: more than 4 values and keys");
  refused({.depth = 1}, "[[]]", "body: nested deeper than 1 levels");
  refused({.key_bytes = 2}, R"({"abc":1})", "body: key of more than 2 bytes");
  refused({.string_bytes = 2}, R"("abc")", "body: string of more than 2 bytes");
  const JsonLimits enough{.bytes = 15, .values = 5, .depth = 1, .key_bytes = 1, .string_bytes = 2};
  EXPECT_EQ(parse_by({.limits = enough}, R"({"a":1,"b":"x"})").root().num_members(), 2u);
}

TEST(JsonRules, SayWhetherNaNAndCommentsAreRead) {
  const auto is_read = [](const JsonRules& rules, std::string_view text) {
    try {
      (void)parse_by(rules, text);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  for (const char* text : {"NaN", "[Infinity]", "-Infinity"}) {
    EXPECT_TRUE(is_read({.non_finite = true}, text)) << text;
    EXPECT_FALSE(is_read({.non_finite = false}, text)) << text;
  }
  for (const char* text : {"// a\n1 /* b */ // c", "{/**/\"a\"/*:*/:/***/1//\n}//"}) {
    EXPECT_TRUE(is_read({.comments = true}, text)) << text;
    EXPECT_FALSE(is_read({.comments = false}, text)) << text;
  }
  for (const char* text : {"1 /", "1 /*", "/* 1", "1 /* /", "// 1"}) {
    EXPECT_FALSE(is_read({.comments = true}, text)) << text;
  }
}

TEST(JsonRules, LeaveStringsInTheTextTheyBorrow) {
  const std::string text = R"(["plain", "esc\u0061ped"])";
  const JsonDocument document = parse_by({}, text);
  const auto is_inside = [&](std::string_view part) {
    return part.data() >= text.data() && part.data() < text.data() + text.size();
  };
  EXPECT_TRUE(is_inside(document.root().element(0).as_text()));
  EXPECT_FALSE(is_inside(document.root().element(1).as_text()));
  EXPECT_EQ(document.root().element(1).as_text(), "escaped");
}

TEST(JsonParser, EndsWithTheWorkOfItsThread) {
  std::stop_source stop;
  const Interrupt interrupt(stop.get_token(), Interrupt::Clock::time_point::max(), "a test");
  const InterruptScope scope(&interrupt);
  std::string values = "[0";
  for (int i = 0; i < 5000; ++i) values += ",0";
  values += "]";
  const std::string text = "\"" + std::string(3 << 20, 'x') + "\"";
  EXPECT_NO_THROW((void)parse_text(values));
  stop.request_stop();
  for (const std::string& long_one : {values, text})
    test::expect_error(ErrorCode::kCancelled, "stopped", [&] { (void)parse_text(long_one); });
}

}  // namespace
}  // namespace fovea
