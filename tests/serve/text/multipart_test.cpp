#include "serve/text/multipart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/api_error.h"

namespace fovea::serve {
namespace {

using testing::HasSubstr;

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string text_of(const FormPart& part) { return {part.bytes.begin(), part.bytes.end()}; }

std::string form_refusal(const std::string& body, std::string_view boundary = "b",
                         std::size_t max_parts = 4) {
  try {
    (void)parse_multipart(bytes_of(body), boundary, max_parts);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    EXPECT_EQ(error.code(), "invalid_value");
    return error.what();
  }
  return "nothing was refused";
}

/// A part with this header and content, behind its boundary.
std::string part(const std::string& header, const std::string& content) {
  return "--b\r\n" + header + "\r\n\r\n" + content + "\r\n";
}

const std::string kFile = "Content-Disposition: form-data; name=\"file\"";

TEST(ParseMultipart, ReadsPartsInOrder) {
  const std::string body =
      part(kFile + "; filename=\"a b.png\"\r\nContent-Type: image/PNG; x=y", "\x89PNG") +
      part("content-disposition: form-data; name=options", "{}") + "--b--\r\n";
  const std::vector<FormPart> parts = parse_multipart(bytes_of(body), "b", 2);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].name, "file");
  EXPECT_EQ(parts[0].filename, "a b.png");
  EXPECT_EQ(parts[0].content_type, "image/png");
  EXPECT_EQ(text_of(parts[0]), "\x89PNG");
  EXPECT_EQ(reinterpret_cast<const char*>(parts[0].bytes.data()),
            body.data() + body.find("\x89PNG"));
  EXPECT_EQ(parts[1].name, "options");
  EXPECT_EQ(parts[1].content_type, "");
  EXPECT_EQ(text_of(parts[1]), "{}");
}

TEST(ParseMultipart, IgnoresWhatStandsAround) {
  const std::string body = "before\r\n" + part(kFile, "x") + "--b--\r\nbehind\r\n--b\r\n";
  ASSERT_EQ(parse_multipart(bytes_of(body), "b", 1).size(), 1U);
}

TEST(ParseMultipart, KeepsWhatOnlyLooksLikeABoundary) {
  const std::string content = "\r\n--bc\r\n--b x\r\n-b\r\n\r\n--";
  const std::string body = part(kFile, content) + "--b--";
  const std::vector<FormPart> parts = parse_multipart(bytes_of(body), "b", 1);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(text_of(parts[0]), content);
}

TEST(ParseMultipart, TakesABoundaryWithPadding) {
  const std::string body = "--b \t\r\n" + kFile + "\r\n\r\nx\r\n--b--";
  EXPECT_EQ(text_of(parse_multipart(bytes_of(body), "b", 1).at(0)), "x");
}

TEST(ParseMultipart, TakesPartsWithoutContent) {
  for (const char* rest : {"\r\n\r\n\r\n--b--", "\r\n\r\n--b--"}) {
    const std::string body = "--b\r\n" + kFile + rest;
    EXPECT_EQ(text_of(parse_multipart(bytes_of(body), "b", 1).at(0)), "") << rest;
  }
}

TEST(ParseMultipart, TakesAFormWithoutParts) {
  EXPECT_TRUE(parse_multipart(bytes_of("--b--"), "b", 1).empty());
}

TEST(ParseMultipart, RefusesBoundariesThatAreNone) {
  for (const std::string& boundary :
       {std::string(), std::string(71, 'b'), std::string("b "), std::string("b\r\n")}) {
    EXPECT_THAT(form_refusal(part(kFile, "x") + "--b--", boundary),
                HasSubstr("no usable boundary"));
  }
}

TEST(ParseMultipart, RefusesABodyWithoutItsBoundaries) {
  EXPECT_THAT(form_refusal(""), HasSubstr("the boundary of Content-Type is not in it"));
  EXPECT_THAT(form_refusal("--c\r\n\r\n--c--"), HasSubstr("is not in it"));
  EXPECT_THAT(form_refusal("--b"), HasSubstr("is not in it"));
  EXPECT_THAT(form_refusal(part(kFile, "x")), HasSubstr("it ends without its boundary"));
  EXPECT_THAT(form_refusal(part(kFile, "x") + "--b"), HasSubstr("it ends without its boundary"));
}

TEST(ParseMultipart, RefusesHeadersThatAreNone) {
  const std::string end = "--b--";
  EXPECT_THAT(form_refusal(part("Content-Type: image/png", "x") + end), HasSubstr("has no name"));
  EXPECT_THAT(form_refusal(part("Content-Disposition: form-data", "x") + end),
              HasSubstr("form-data with a name"));
  EXPECT_THAT(form_refusal(part("Content-Disposition: attachment; name=file", "x") + end),
              HasSubstr("form-data with a name"));
  EXPECT_THAT(form_refusal(part("Content-Disposition: form-data; name=\"\"", "x") + end),
              HasSubstr("has no name"));
  EXPECT_THAT(form_refusal(part(kFile + "\r\nContent-Type: ;", "x") + end),
              HasSubstr("a Content-Type that is none"));
  EXPECT_THAT(form_refusal(part(kFile + "\r\nContent-Transfer-Encoding: base64", "x") + end),
              HasSubstr("send its bytes as they are"));
  EXPECT_THAT(form_refusal(part("file", "x") + end), HasSubstr("a header without a name"));
  EXPECT_THAT(form_refusal("--b\r\n" + kFile), HasSubstr("have no end within 8192 bytes"));
  EXPECT_THAT(
      form_refusal(part(kFile + "\r\nX: " + std::string(kMaxPartHeaderBytes, 'x'), "x") + end),
      HasSubstr("have no end within 8192 bytes"));
}

TEST(ParseMultipart, TakesBytesAsTheyAre) {
  const std::string body =
      part(kFile + "\r\nContent-Transfer-Encoding: Binary\r\nX-Other: y", "x") + "--b--";
  EXPECT_EQ(parse_multipart(bytes_of(body), "b", 1).size(), 1U);
}

TEST(ParseMultipart, RefusesMoreParts) {
  const std::string three = part(kFile, "x") + part(kFile, "y") + part(kFile, "z") + "--b--";
  EXPECT_EQ(parse_multipart(bytes_of(three), "b", 3).size(), 3U);
  EXPECT_THAT(form_refusal(three, "b", 2), HasSubstr("more than 2 parts"));
}

}  // namespace
}  // namespace fovea::serve
