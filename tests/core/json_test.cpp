#include "core/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stop_token>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/interrupt.h"
#include "core/json_writer.h"
#include "support/expect_error.h"
#include "support/property.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

JsonDocument parse(std::string_view text) { return JsonDocument::parse(text, "x.json"); }

/// Expects that a text is refused with "x.json: " and `message`.
void expect_refused(std::string_view text, const std::string& message) {
  SCOPED_TRACE(text.substr(0, 100));
  test::expect_error(ErrorCode::kCorruptData, cat("x.json: ", message), [&] { (void)parse(text); });
}

/// Expects that `action` on the root of a text is refused with `message`.
template <class Action>
void expect_complaint(std::string_view text, const std::string& message, Action&& action) {
  SCOPED_TRACE(text);
  const JsonDocument document = parse(text);
  test::expect_error(ErrorCode::kCorruptData, message, [&] { (void)action(document.root()); });
}

TEST(Json, ReadsEveryKindOfValue) {
  const JsonDocument document =
      parse(R"({"i": -3, "f": 2.5, "t": true, "s": "\u00e4\n", "a": [1, 2], "o": {"k": 7}})");
  const JsonView root = document.root();
  EXPECT_EQ(root.at("i").as_int(), -3);
  EXPECT_EQ(root.at("f").as_number(), 2.5);
  EXPECT_TRUE(root.at("t").as_bool());
  EXPECT_EQ(root.at("s").as_string(), "\u00e4\n");
  EXPECT_EQ(root.at("a").elements().size(), 2u);
  EXPECT_EQ(root.at("a").elements()[1].as_int(), 2);
  EXPECT_EQ(root.at("o").at("k").as_int(), 7);
}

TEST(Json, TellsKindsApart) {
  const JsonDocument document = parse(R"([{}, [], "", 1, 1.0, true, 18446744073709551615])");
  const auto e = document.root().elements();
  const auto kinds = [](const JsonView& v) {
    return cat(v.is_object(), v.is_array(), v.is_string(), v.is_number(), v.is_integer());
  };
  EXPECT_EQ(kinds(e[0]), "10000");
  EXPECT_EQ(kinds(e[1]), "01000");
  EXPECT_EQ(kinds(e[2]), "00100");
  EXPECT_EQ(kinds(e[3]), "00011");
  EXPECT_EQ(kinds(e[4]), "00010");
  EXPECT_EQ(kinds(e[5]), "00000");
  EXPECT_EQ(kinds(e[6]), "00011");
}

TEST(Json, TakesAnyValueAsRoot) { EXPECT_EQ(parse(" 5 ").root().as_int(), 5); }

TEST(Json, NamesThePathOfAValue) {
  const JsonDocument document = parse(R"({"a": {"b": [0, {"c": 1}]}})");
  EXPECT_EQ(document.root().path(), "x.json");
  EXPECT_EQ(document.root().at("a").path(), "x.json: a");
  EXPECT_EQ(document.root().at("a").at("b").elements()[1].at("c").path(), "x.json: a.b[1].c");
}

TEST(Json, CutsLongKeysOfAPath) {
  const std::string key(kMaxJsonKeyBytes, 'k');
  const JsonDocument document = parse("{\"" + key + "\": [1]}");
  const JsonView list = document.root().at(key);
  EXPECT_EQ(list.elements()[0].path(), "x.json: " + std::string(128, 'k') + "...[0]");
}

TEST(Json, ViewsStayValidWhenTheDocumentMoves) {
  JsonDocument document = parse(R"({"a": [{}, 5]})");
  const JsonView five = document.root().at("a").elements()[1];
  const JsonDocument moved(std::move(document));
  EXPECT_EQ(five.as_int(), 5);
  EXPECT_EQ(five.path(), "x.json: a[1]");
}

TEST(Json, RefusesAKeyAboveTheLimit) {
  const std::string key(kMaxJsonKeyBytes + 1, 'k');
  expect_refused("{\"" + key + "\": 1}", "key of more than 1000 bytes");
}

TEST(Json, RefusesAStringAboveTheLimit) {
  expect_refused("[\"" + std::string(kMaxJsonStringBytes + 1, 's') + "\"]",
                 "string of more than 32000000 bytes");
}

TEST(Json, KeepsTheOrderOfKeys) {
  EXPECT_EQ(parse(R"({"b": 0, "a": 0, "c": 0})").root().keys(),
            (std::vector<std::string_view>{"b", "a", "c"}));
}

TEST(Json, TreatsNullAsAbsent) {
  const JsonDocument document = parse(R"({"a": null})");
  EXPECT_FALSE(document.root().find("a"));
  EXPECT_FALSE(document.root().find("b"));
  EXPECT_EQ(document.root().int_or("a", 4), 4);
}

TEST(Json, FallsBackForAbsentMembersOnly) {
  const JsonDocument document = parse(R"({"i": 1, "f": 0.5, "b": false, "s": "x"})");
  const JsonView root = document.root();
  EXPECT_EQ(root.int_or("i", 9), 1);
  EXPECT_EQ(root.int_or("-", 9), 9);
  EXPECT_EQ(root.number_or("f", 9.5), 0.5);
  EXPECT_EQ(root.number_or("-", 9.5), 9.5);
  EXPECT_FALSE(root.bool_or("b", true));
  EXPECT_TRUE(root.bool_or("-", true));
  EXPECT_EQ(root.string_or("s", "y"), "x");
  EXPECT_EQ(root.string_or("-", "y"), "y");
  test::expect_error(ErrorCode::kCorruptData, "x.json: s: expected an integer, got \"x\"",
                     [&] { (void)root.int_or("s", 9); });
}

TEST(Json, ReadsNaNAndInfinityAsNull) {
  const JsonDocument document = parse(R"({"a": NaN, "b": [Infinity, -Infinity, 1], "c": "NaN"})");
  EXPECT_FALSE(document.root().find("a"));
  const auto b = document.root().at("b").elements();
  ASSERT_EQ(b.size(), 3u);
  EXPECT_FALSE(b[0].is_number());
  EXPECT_FALSE(b[1].is_number());
  EXPECT_EQ(b[2].as_int(), 1);
  EXPECT_EQ(document.root().at("c").as_string(), "NaN");
}

TEST(Json, LeavesStringsWithNaNAndQuotesAlone) {
  const JsonDocument document = parse(R"({"a\"NaN": "\\", "b": "x\"Infinity"})");
  EXPECT_EQ(document.root().at("a\"NaN").as_string(), "\\");
  EXPECT_EQ(document.root().at("b").as_string(), "x\"Infinity");
}

TEST(Json, PlacesAnErrorBehindNaNWhereItIs) {
  expect_refused("{\"a\": NaN, \"b\": NaN, ?}", "line 1, column 22: ");
}

TEST(Json, LetsTheLastOfEqualKeysWin) {
  const JsonDocument document = parse(R"({"a": 1, "b": 2, "a": 3, "a": 4})");
  EXPECT_EQ(document.root().at("a").as_int(), 4);
  EXPECT_EQ(document.root().at("b").as_int(), 2);
  EXPECT_EQ(document.root().keys(), (std::vector<std::string_view>{"b", "a"}));
}

TEST(Json, RefusesEqualKeysWhereAsked) {
  for (const char* text : {R"({"a": 1, "b": 2, "a": 3})", R"([{"c": {"a": 1, "\u0061": 3}}])"}) {
    test::expect_error(ErrorCode::kCorruptData, "x.json: key \"a\" occurs twice",
                       [&] { (void)JsonDocument::parse(text, "x.json", DuplicateKeys::kReject); });
  }
}

TEST(Json, NamesLineAndColumnOfASyntaxError) {
  expect_refused("{\n  \"a\": 1,\n  \"b\" 2\n}", "line 3, column 7: syntax error");
}

TEST(Json, RefusesWhatIsNotJson) {
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

TEST(Json, RefusesTextThatIsNotUtf8) {
  expect_refused("[\"a\xff\"]", "line 1, column 4: ");
  expect_refused("[\"\xc0\x80\"]", "line 1, column 3: ");  // overlong zero
  expect_refused("[\"\\ud800\"]", "line 1, column ");      // half a surrogate pair
}

TEST(Json, RefusesAZeroByteInsteadOfEndingThere) {
  expect_refused(std::string_view("{}\0 garbage", 11), "line 1, column 3: zero byte");
}

TEST(Json, DoesNotQuoteTheTextInSyntaxErrors) {
  try {
    (void)parse("{\"token\": secret}");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("secr")));
  }
}

TEST(Json, RefusesANumberBeyondDouble) {
  const std::string zeros(400, '0');
  for (const std::string& number :
       {std::string("1e400"), "-1" + zeros + ".5", "0." + zeros + "1e801",
        std::string("1e99999999999999999999")}) {
    expect_refused("[" + number + "]", "line 1, column ");
  }
}

TEST(Json, ReadsANumberBelowDoubleAsZero) {
  const std::string zeros(400, '0');
  for (const std::string& number :
       {std::string("1e-400"), "-0." + zeros + "1", std::string("0.1e-99999999999999999999"),
        "1" + zeros + "e-800"}) {
    EXPECT_EQ(parse(number).root().as_number(), 0.0) << number;
  }
  EXPECT_TRUE(std::signbit(parse("-1e-400").root().as_number()));
}

TEST(Json, TakesNumbersAsTheyAreWrittenAlone) {
  for (const char* text : {"01", "+1", ".5", "1.", "1e", "1e+", "-", "0x1", "1_0", "--1", "1.e1"}) {
    expect_refused(text, "line 1, column ");
  }
  EXPECT_EQ(parse("-0").root().as_int(), 0);
  EXPECT_EQ(parse("1E+2").root().as_number(), 100.0);
  EXPECT_EQ(parse("-0.5e-1").root().as_number(), -0.05);
}

TEST(Json, ReadsEveryEscape) {
  EXPECT_EQ(parse(R"("\\\"\/\b\f\n\r\t\u0041")").root().as_string(), "\\\"/\b\f\n\r\tA");
  EXPECT_EQ(parse(R"("x\u0000y")").root().as_string(), std::string("x\0y", 3));
  EXPECT_EQ(parse(R"("\u00e9\u4e16\ud83d\ude00.")").root().as_string(),
            "\xc3\xa9\xe4\xb8\x96\xf0\x9f\x98\x80.");
  for (const char* text :
       {R"("\x")", R"("\u12")", R"("\u12g4")", R"("\ude00")", R"("\ud83d")", R"("\ud83dx")",
        R"("\ud83d\n")", R"("\ud83d\u0041")", "\"\\", "\"\\\"", "\"a\nb\"", "\"a"}) {
    expect_refused(text, "line 1, column ");
  }
}

TEST(Json, TakesEveryCharacterOfUtf8AndNothingElse) {
  const auto is_read = [](const std::string& bytes) {
    try {
      return parse("\"" + bytes + "\"").root().as_string() == bytes;
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

TEST(Json, KeepsEscapedStringsApart) {
  std::string text = "[\"\\n" + std::string(100'000, 'x') + "\"";
  for (int i = 0; i < 20'000; ++i) text += ",\"\\u0041" + cat(i) + "\"";
  const JsonDocument document = parse(text + "]");
  const JsonView root = document.root();
  EXPECT_EQ(root.element(0).as_text().size(), 100'001u);
  for (std::size_t i = 1; i < root.num_elements(); ++i)
    ASSERT_EQ(root.element(i).as_text(), "A" + cat(i - 1));
}

TEST(Json, SkipsTheMarkOfUtf8InFront) {
  EXPECT_EQ(parse("\xef\xbb\xbf[1]").root().num_elements(), 1u);
}

TEST(Json, GivesMembersInFileOrder) {
  const JsonDocument document = parse(R"({"b": 1, "a": null, "b": [2]})");
  const JsonView root = document.root();
  ASSERT_EQ(root.num_members(), 2u);
  EXPECT_EQ(root.key(0), "a");
  EXPECT_TRUE(root.member(0).is_null());
  EXPECT_EQ(root.key(1), "b");
  EXPECT_EQ(root.member(1).path(), "x.json: b");
  EXPECT_EQ(root.member(1).element(0).path(), "x.json: b[0]");
}

TEST(Json, TakesTheDeepestNestingAllowed) {
  const std::string text = std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']');
  EXPECT_TRUE(parse(text).root().is_array());
}

TEST(Json, RefusesDeeperNesting) {
  const std::size_t depth = kMaxJsonDepth + 1;
  expect_refused(std::string(depth, '[') + std::string(depth, ']'), "nested deeper than 64");
  expect_refused(std::string(1'000'000, '['), "nested deeper than 64");
}

TEST(Json, RefusesMoreValuesThanTheLimit) {
  std::string text = "[0";
  for (std::size_t i = 0; i < kMaxJsonValues; ++i) text += ",0";
  expect_refused(text + "]", "more than 4000000 values");
}

TEST(Json, RefusesATextAboveTheLimit) {
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

TEST(Json, EndsWithTheWorkOfItsThread) {
  std::stop_source stop;
  const Interrupt interrupt(stop.get_token(), Interrupt::Clock::time_point::max(), "a test");
  const InterruptScope scope(&interrupt);
  std::string values = "[0";
  for (int i = 0; i < 5000; ++i) values += ",0";
  values += "]";
  const std::string text = "\"" + std::string(3 << 20, 'x') + "\"";
  EXPECT_NO_THROW((void)parse(values));
  stop.request_stop();
  for (const std::string& long_one : {values, text})
    test::expect_error(ErrorCode::kCancelled, "stopped", [&] { (void)parse(long_one); });
}

TEST(JsonView, NamesTheKeyOfAnAbsentMember) {
  expect_complaint(R"({"a": {}})", "x.json: a.b: expected a value, got none",
                   [](const JsonView& root) { return root.at("a").at("b"); });
  expect_complaint("{}", "x.json: b: expected a value, got none",
                   [](const JsonView& root) { return root.at("b"); });
}

TEST(JsonView, SaysWhatCameInsteadOfAnInteger) {
  const auto as_int = [](const JsonView& root) { return root.at("k").as_int(); };
  expect_complaint(R"({"k": "16"})", "x.json: k: expected an integer, got \"16\"", as_int);
  expect_complaint(R"({"k": 2.5})", "expected an integer, got 2.5", as_int);
  expect_complaint(R"({"k": true})", "expected an integer, got true", as_int);
  expect_complaint(R"({"k": []})", "expected an integer, got an array", as_int);
  expect_complaint(R"({"k": {}})", "expected an integer, got an object", as_int);
  expect_complaint(R"({"k": 1e30})", "expected an integer, got 1e+30", as_int);
}

TEST(JsonView, ShortensTheStringItComplainsAbout) {
  const std::string text = "[\"" + std::string(1000, 'x') + "\"]";
  expect_complaint(text, "got \"" + std::string(40, 'x') + "\"",
                   [](const JsonView& root) { return root.elements()[0].as_int(); });
}

TEST(JsonView, TakesIntegersUpTo63Bits) {
  const JsonDocument document =
      parse("[9223372036854775807, -9223372036854775808, 2.0, -0.0, 4503599627370496.0]");
  const auto e = document.root().elements();
  EXPECT_EQ(e[0].as_int(), INT64_MAX);
  EXPECT_EQ(e[1].as_int(), INT64_MIN);
  EXPECT_EQ(e[2].as_int(), 2);
  EXPECT_EQ(e[3].as_int(), 0);
  EXPECT_EQ(e[4].as_int(), std::int64_t{1} << 52);
}

TEST(JsonView, RefusesIntegersBeyond63Bits) {
  const auto first = [](const JsonView& root) { return root.elements()[0].as_int(); };
  expect_complaint("[9223372036854775808]", "at most 63 bits, got 9223372036854775808", first);
  expect_complaint("[18446744073709551616]", "expected an integer, got 1.84467e+19", first);
  expect_complaint("[9223372036854775808.0]", "expected an integer", first);
}

TEST(JsonView, SaysWhatCameInsteadOfOtherTypes) {
  expect_complaint("[1]", "x.json: expected an object, got an array",
                   [](const JsonView& root) { return root.find("a"); });
  expect_complaint("{}", "x.json: expected an array, got an object",
                   [](const JsonView& root) { return root.elements(); });
  expect_complaint("[]", "expected an object, got an array",
                   [](const JsonView& root) { return root.keys(); });
  expect_complaint("\"1\"", "expected a number, got \"1\"",
                   [](const JsonView& root) { return root.as_number(); });
  expect_complaint("1", "expected true or false, got 1",
                   [](const JsonView& root) { return root.as_bool(); });
  expect_complaint("1", "expected a string, got 1",
                   [](const JsonView& root) { return root.as_string(); });
  expect_complaint("null", "expected a string, got null",
                   [](const JsonView& root) { return root.as_string(); });
}

TEST(JsonView, GivesEveryNumberAsDouble) {
  const JsonDocument document = parse("[-1, 18446744073709551615, 0.25]");
  const auto e = document.root().elements();
  EXPECT_EQ(e[0].as_number(), -1.0);
  EXPECT_EQ(e[1].as_number(), 18446744073709551616.0);
  EXPECT_EQ(e[2].as_number(), 0.25);
}

TEST(JsonFile, IsRefusedBeforeItIsReadWhereItIsTooLarge) {
  const test::TemporaryDirectory folder;
  test::write_text(folder / "a.json", "[1, 2]");
  test::expect_error(ErrorCode::kInvalidArgument, "a.json", [&] {
    (void)JsonDocument::read(folder / "a.json", {.limits = {.bytes = 5}});
  });
  EXPECT_EQ(JsonDocument::read(folder / "a.json", {.limits = {.bytes = 6}}).root().num_elements(),
            2u);
}

TEST(JsonFile, IsNamedByItsPath) {
  const test::TemporaryDirectory folder;
  test::write_text(folder / "a.json", "{\"a\": 1}");
  EXPECT_EQ(JsonDocument::read(folder / "a.json").root().path(), folder / "a.json");
  test::write_text(folder / "b.json", "{\"a\": }");
  test::expect_error(ErrorCode::kCorruptData, "b.json: line 1, column 7: ", [&] {
    (void)JsonDocument::read(folder / "b.json");
  });
  test::expect_error(ErrorCode::kNotFound, "c.json: no such file",
                     [&] { (void)JsonDocument::read(folder / "c.json"); });
}

TEST(Json, EqualsWhatHasTheSameValues) {
  const auto equal = [](const char* a, const char* b) {
    const JsonDocument first = JsonDocument::parse(a, "a");
    const JsonDocument second = JsonDocument::parse(b, "b");
    return first.root().equals(second.root());
  };
  EXPECT_TRUE(equal(R"({"a": [1, 2.5, null, true, "x"], "b": {}})",
                    R"({"b": {}, "a": [1.0, 2.5, null, true, "x"]})"));
  for (const char* other : {"2", "1.5", "true", "null", R"("1")", "[1]", R"({"1": 1})"}) {
    EXPECT_FALSE(equal("1", other)) << other;
  }
  EXPECT_FALSE(equal("[1, 2]", "[1]"));
  EXPECT_FALSE(equal("[1]", "[1, 2]"));
  EXPECT_FALSE(equal(R"({"a": 1})", R"({"a": 1, "b": 2})"));
  EXPECT_FALSE(equal(R"({"a": 1})", R"({"b": 1})"));
  EXPECT_FALSE(equal("true", "false"));
}

}  // namespace
}  // namespace fovea
