#include "serve/text/content_type.h"

#include <gtest/gtest.h>

namespace fovea::serve {
namespace {

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
