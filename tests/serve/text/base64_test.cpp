#include "serve/text/base64.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

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

}  // namespace
}  // namespace fovea::serve
