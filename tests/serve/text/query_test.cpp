#include "serve/text/query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/json_writer.h"
#include "serve/api_error.h"

namespace fovea::serve {
namespace {

using testing::HasSubstr;

std::string query_refusal(std::string_view query) {
  try {
    (void)query_object(query);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.code(), "invalid_value");
    return error.what();
  }
  return "nothing was refused";
}

void expect_object(const std::string& query, const std::string& json,
                   const std::vector<QueryMember>& types = {}) {
  const JsonDocument expected = JsonDocument::parse(json, "expected");
  EXPECT_TRUE(query_object(query, types)->root().equals(expected.root())) << query;
}

TEST(QueryObject, NestsNamesWithDots) {
  expect_object("output.format=npy&id=a&output.dtype=float32",
                R"({"output":{"format":"npy","dtype":"float32"},"id":"a"})");
  expect_object("", "{}");
}

TEST(QueryObject, DecodesNamesAndValues) {
  expect_object("a%62=c+d%2B&e&f=&&g=h=i", R"({"ab":"c d+","e":"","f":"","g":"h=i"})");
  expect_object("%22=%5C%0A&a=%C3%A9", R"({"\"":"\\\n","a":"\u00e9"})");
}

TEST(QueryObject, GivesTypesToSomeOptions) {
  using detail::ValueKind;
  const std::vector<QueryMember> types{{"n", nullptr, ValueKind::kNumber},
                                       {"a.n", nullptr, ValueKind::kBool},
                                       {"m", nullptr, ValueKind::kText},
                                       {"l", nullptr, ValueKind::kTexts}};
  expect_object("n=1.5&a.n=true&m=2", R"({"n":1.5,"a":{"n":true},"m":"2"})", types);
  expect_object("l=a,%22,b", R"({"l":["a","\"","b"]})", types);
  expect_object("l=", R"({"l":[]})", types);
  expect_object("l=a&l=b,c", R"({"l":["a","b","c"]})", types);
  for (const char* text : {"x", "[1]", "1,\"m\":2", "null", "NaN", ""})
    expect_object(std::string("n=") + text, "{\"n\":" + json_quote(text) + "}", types);
}

TEST(QueryObject, GivesTypesToAllOptionsBelowAName) {
  using detail::ValueKind;
  const std::vector<QueryMember> types{{"a.id", nullptr, ValueKind::kText},
                                       {"a.", nullptr, ValueKind::kNumber}};
  expect_object("a.n=1&a.b.flag=false&a.word=x&a.id=2&b=3&ab=4",
                R"({"a":{"n":1,"b":{"flag":false},"word":"x","id":"2"},"b":"3","ab":"4"})", types);
}

TEST(QueryObject, RefusesWhatNamesNothing) {
  EXPECT_THAT(query_refusal("a=%zz"), HasSubstr("% without two digits"));
  EXPECT_THAT(query_refusal("a=%ff"), HasSubstr("no UTF-8"));
  EXPECT_THAT(query_refusal("=1"), HasSubstr("no name of an option"));
  EXPECT_THAT(query_refusal(".a=1"), HasSubstr("no name of an option"));
  EXPECT_THAT(query_refusal("a..b=1"), HasSubstr("no name of an option"));
  EXPECT_THAT(query_refusal("a.=1"), HasSubstr("no name of an option"));
}

TEST(QueryObject, RefusesANameThatIsGivenTwice) {
  EXPECT_THAT(query_refusal("a=1&a=2"), HasSubstr("a is given twice"));
  EXPECT_THAT(query_refusal("a=1&a.b=2"), HasSubstr("a.b is given twice"));
  EXPECT_THAT(query_refusal("a.b=1&a=2"), HasSubstr("a is given twice"));
}

TEST(QueryObject, BoundsTheNumberOfNames) {
  std::string query;
  for (std::size_t i = 0; i < kMaxQueryOptions; ++i) query += "&n" + std::to_string(i) + "=1";
  EXPECT_EQ(query_object(query)->root().num_members(), kMaxQueryOptions);
  EXPECT_THAT(query_refusal(query + "&more"), HasSubstr("more than 64 options"));
}

TEST(QueryObject, RefusesNamesThatAreNestedTooDeep) {
  std::string name = "a";
  for (std::size_t depth = 1; depth < kBodyLimits.depth; ++depth) name += ".a";
  EXPECT_NO_THROW((void)query_object(name + "=1"));
  EXPECT_THAT(query_refusal(name + ".a=1"), HasSubstr("nested too deep"));
}

}  // namespace
}  // namespace fovea::serve
