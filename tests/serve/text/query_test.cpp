#include "serve/text/query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/api_error.h"

namespace fovea::serve {
namespace {

using testing::HasSubstr;

std::string refusal(std::string_view query) {
  try {
    (void)query_object(query);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.code(), "invalid_value");
    return error.what();
  }
  return "nothing was refused";
}

TEST(QueryObject, NestsNamesWithDots) {
  EXPECT_EQ(query_object("output.format=npy&output.dtype=float32&id=a"),
            Json::parse(R"({"output":{"format":"npy","dtype":"float32"},"id":"a"})"));
  EXPECT_EQ(query_object(""), Json::object());
}

TEST(QueryObject, DecodesNamesAndValues) {
  EXPECT_EQ(query_object("a%62=c+d%2B&e&f=&&g=h=i"),
            Json::parse(R"({"ab":"c d+","e":"","f":"","g":"h=i"})"));
}

TEST(QueryObject, RefusesWhatNamesNothing) {
  EXPECT_THAT(refusal("a=%zz"), HasSubstr("% without two digits"));
  EXPECT_THAT(refusal("a=%ff"), HasSubstr("no UTF-8"));
  EXPECT_THAT(refusal("=1"), HasSubstr("no name of an option"));
  EXPECT_THAT(refusal(".a=1"), HasSubstr("no name of an option"));
  EXPECT_THAT(refusal("a..b=1"), HasSubstr("no name of an option"));
  EXPECT_THAT(refusal("a.=1"), HasSubstr("no name of an option"));
}

TEST(QueryObject, RefusesANameThatIsGivenTwice) {
  EXPECT_THAT(refusal("a=1&a=2"), HasSubstr("a is given twice"));
  EXPECT_THAT(refusal("a=1&a.b=2"), HasSubstr("a.b is given twice"));
  EXPECT_THAT(refusal("a.b=1&a=2"), HasSubstr("a is given twice"));
}

TEST(QueryObject, RefusesNamesThatAreNestedTooDeep) {
  std::string name = "a";
  for (int depth = 1; depth < kMaxJsonDepth; ++depth) name += ".a";
  EXPECT_NO_THROW((void)query_object(name + "=1"));
  EXPECT_THAT(refusal(name + ".a=1"), HasSubstr("nested too deep"));
}

}  // namespace
}  // namespace fovea::serve
