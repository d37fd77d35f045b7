#include "serve/text/data_url.h"

#include <gtest/gtest.h>

namespace fovea::serve {
namespace {

TEST(ParseDataUrl, SplitsTypeAndData) {
  const DataUrl url = parse_data_url("data:image/png;base64,aGk=").value();
  EXPECT_EQ(url.type, "image/png");
  EXPECT_EQ(url.base64, "aGk=");
}

TEST(ParseDataUrl, TakesAnyCase) {
  const DataUrl url = parse_data_url("DATA:Image/SVG+xml;Base64,AAAA").value();
  EXPECT_EQ(url.type, "image/svg+xml");
  EXPECT_EQ(url.base64, "AAAA");
}

TEST(ParseDataUrl, NeedsNeitherTypeNorData) {
  EXPECT_EQ(parse_data_url("data:;base64,AAAA")->type, "");
  EXPECT_EQ(parse_data_url("data:;base64,")->base64, "");
}

TEST(ParseDataUrl, PassesOverParameters) {
  EXPECT_EQ(parse_data_url("data:image/png;name=a.png;charset=utf-8;base64,AAAA")->base64, "AAAA");
  EXPECT_EQ(parse_data_url("data:;charset=utf-8;base64,AAAA")->type, "");
}

TEST(ParseDataUrl, LeavesTheDataAsItIs) {
  EXPECT_EQ(parse_data_url("data:;base64,a,b;base64,c")->base64, "a,b;base64,c");
}

TEST(ParseDataUrl, RefusesOtherForms) {
  for (const char* text : {"",
                           "data",
                           "data:",
                           "data:,hello",
                           "data:image/png,hello",
                           "data:image/png;base64",
                           "data:image/png;base64;x=y,AAAA",
                           "data:base64,AAAA",
                           "data:image;base64,AAAA",
                           "data:/png;base64,AAAA",
                           "data:image/;base64,AAAA",
                           "data:image/png/x;base64,AAAA",
                           "data:image/png;;base64,AAAA",
                           "data:image/png;x;base64,AAAA",
                           "data:im age/png;base64,AAAA",
                           "data:image/png;x=;base64,AAAA",
                           "data:image/png;x=\"a;base64,AAAA",
                           " data:;base64,AAAA",
                           "data:image/png; base64,AAAA",
                           "data:\xc3\xbc/png;base64,AAAA",
                           "image/png;base64,AAAA"}) {
    EXPECT_FALSE(parse_data_url(text)) << text;
  }
}

TEST(ParseDataUrl, BoundsItsHead) {
  const auto with_parameter = [](std::size_t bytes) {
    return parse_data_url("data:image/png;x=" + std::string(bytes, 'y') + ";base64,AAAA");
  };
  EXPECT_TRUE(with_parameter(1000).has_value());
  EXPECT_FALSE(with_parameter(1024).has_value());
}

TEST(Base64Bytes, AreNeverTooFew) {
  EXPECT_EQ(base64_bytes(""), 0U);
  EXPECT_GE(base64_bytes("Zg"), 1U);
  EXPECT_GE(base64_bytes("Zm8"), 2U);
  EXPECT_EQ(base64_bytes("Zm9v"), 3U);
}

}  // namespace
}  // namespace fovea::serve
