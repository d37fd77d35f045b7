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

}  // namespace
}  // namespace fovea::serve
