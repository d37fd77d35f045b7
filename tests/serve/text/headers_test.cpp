#include "serve/text/headers.h"

#include <gtest/gtest.h>

namespace fovea::serve {
namespace {

TEST(FindHeader, LooksAtNoCase) {
  const Headers headers{{"Content-Type", "a"}, {"X-Other", "b"}, {"content-type", "c"}};
  ASSERT_NE(find_header(headers, "CONTENT-TYPE"), nullptr);
  EXPECT_EQ(*find_header(headers, "content-type"), "a");
  EXPECT_EQ(find_header(headers, "content-typ"), nullptr);
}

TEST(ListedNames, AreThoseBetweenCommas) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(listed_names("Origin"), Names{"origin"});
  EXPECT_EQ(listed_names(" ,X-A,\tkeep-alive , ,"), (Names{"x-a", "keep-alive"}));
  for (const char* none : {"", " ", ",", " , "}) EXPECT_TRUE(listed_names(none).empty()) << none;
}

TEST(ParseContentType, ReadsATypeInAnyCase) {
  EXPECT_EQ(parse_content_type("image/PNG")->type, "image/png");
  EXPECT_EQ(parse_content_type(" form-data ")->type, "form-data");
  EXPECT_TRUE(parse_content_type("image/png")->parameters.empty());
}

TEST(ParseContentType, ReadsParameters) {
  const auto type = parse_content_type("multipart/form-data ; Boundary=a-b;x=\"y \\\"z\\\"\" ;");
  ASSERT_TRUE(type);
  EXPECT_EQ(*find_header(type->parameters, "boundary"), "a-b");
  EXPECT_EQ(*find_header(type->parameters, "x"), "y \"z\"");
}

TEST(ParseContentType, RefusesWhatBreaksTheForm) {
  for (const char* broken :
       {"", ";", "/png", "image/", "image/png x", "image/png; x", "image/png; x=", "image/png; =y",
        "image/png; x=\"y", "image/png; x=\"y\\", "image/png; x=\"\n\"", "image/png; x=1; X=2",
        "image/p\xc3\xa4g", "image/png, image/gif"}) {
    EXPECT_FALSE(parse_content_type(broken)) << broken;
  }
}

}  // namespace
}  // namespace fovea::serve
