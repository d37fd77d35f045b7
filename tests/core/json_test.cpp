#include "core/json.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "core/check.h"
#include "support/expect_error.h"
#include "support/property.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

JsonDocument parse(std::string_view text) { return JsonDocument::parse(text, "x.json"); }

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
