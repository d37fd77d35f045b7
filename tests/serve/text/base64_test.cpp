#include "serve/text/base64.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <stop_token>

#include "core/interrupt.h"
#include "support/expect_error.h"

namespace fovea::serve {
namespace {

std::string encoded(std::string_view text) { return to_base64(std::as_bytes(std::span(text))); }

std::string decoded(std::string_view text) {
  const auto bytes = from_base64(text);
  return bytes ? std::string(bytes->begin(), bytes->end()) : "refused";
}

// Source: RFC 4648, section 10.
TEST(Base64, KnowsTheVectorsOfTheRfc) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, text] : vectors) {
    EXPECT_EQ(encoded(plain), text);
    EXPECT_EQ(decoded(text), plain);
  }
}

TEST(Base64, TakesTextWithoutPadding) {
  EXPECT_EQ(decoded("Zg"), "f");
  EXPECT_EQ(decoded("Zm8"), "fo");
}

TEST(Base64, RefusesWhatIsNoBase64) {
  for (const char* text : {"Z", "Zm9vY", "Zg=", "Zg===", "Z===", "Zm=v", "Zm9v\n", " Zm9v", "Zm9-",
                           "Zm9_", "=", "====", "Zh==", "Zm9=", "\xff\xff\xff\xff"}) {
    EXPECT_EQ(decoded(text), "refused") << text;
  }
}

TEST(Base64, ReadsBackAllBytesOfAnyLength) {
  std::minstd_rand random(7);
  for (std::size_t size = 0; size < 200; ++size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    EXPECT_EQ(decoded(encoded(bytes)), bytes);
  }
}

TEST(Base64, ReadsPiecesOfALongText) {
  std::string bytes((std::size_t{2} << 20) + 1, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 >> 3);
  const std::string text = encoded(bytes);
  EXPECT_EQ(decoded(text), bytes);
  for (const std::size_t at : {std::size_t{0}, (std::size_t{1} << 20) - 1, std::size_t{1} << 20}) {
    std::string wrong = text;
    wrong[at] = '.';
    EXPECT_EQ(decoded(wrong), "refused") << at;
  }
}

TEST(Base64, EndsWithTheInterruptOfItsThread) {
  const std::string text(std::size_t{3} << 20, 'A');
  std::stop_source stop;
  const Interrupt interrupt(stop.get_token(), Interrupt::Clock::time_point::max(), "");
  const InterruptScope scope(&interrupt);
  EXPECT_TRUE(from_base64(text));
  stop.request_stop();
  test::expect_error(ErrorCode::kCancelled, "", [&] { (void)from_base64(text); });
}

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
