#include "serve/http/chunk_decoder.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "serve/api_error.h"

namespace fovea::serve {
namespace {

struct Decoded {
  std::string body;
  bool is_done = false;
  std::size_t rest = 0;  ///< bytes behind the end
};

/// Feeds the text in pieces of that size. Nothing if it is refused.
std::optional<Decoded> decode(std::string_view text, std::size_t piece = 1'000'000) {
  ChunkDecoder decoder;
  Decoded decoded;
  try {
    while (!text.empty() && !decoder.is_done()) {
      const ChunkDecoder::Step step = decoder.next(text.substr(0, piece));
      decoded.body += step.data;
      text.remove_prefix(step.consumed);
    }
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    return std::nullopt;
  }
  decoded.is_done = decoder.is_done();
  decoded.rest = text.size();
  return decoded;
}

TEST(ChunkDecoder, JoinsChunksHoweverTheyCome) {
  const std::string_view text =
      "3\r\nabc\r\n0A;name=\"v\"\r\n0123456789\r\n1 ; x\r\n\r\r\n0\r\nTrailer: "
      "x\r\nOther:\r\n\r\nGET";
  for (std::size_t piece = 1; piece < 20; ++piece) {
    const auto decoded = decode(text, piece);
    ASSERT_TRUE(decoded) << piece;
    EXPECT_EQ(decoded->body, "abc0123456789\r") << piece;
    EXPECT_TRUE(decoded->is_done);
    EXPECT_EQ(decoded->rest, 3u);
  }
}

TEST(ChunkDecoder, TakesAnEmptyBody) {
  EXPECT_TRUE(decode("0\r\n\r\n")->is_done);
  EXPECT_TRUE(decode("000\r\n\r\n")->is_done);
}

TEST(ChunkDecoder, GoesOnUntilTheEnd) {
  for (const std::string_view text :
       {"3", "3\r\n", "3\r\nab", "3\r\nabc\r\n", "0\r\n", "0\r\n\r"}) {
    const auto decoded = decode(text);
    ASSERT_TRUE(decoded) << text;
    EXPECT_FALSE(decoded->is_done) << text;
  }
}

TEST(ChunkDecoder, RefusesWhatCanBeReadInTwoWays) {
  using std::string_literals::operator""s;
  for (const std::string& text :
       {"\r\n"s, "g\r\n"s, " 3\r\n"s, "-1\r\n"s, "0x3\r\n"s, ";\r\n"s, "3\nabc"s, "3\rabc"s,
        "3\r\nabcd\r\n"s, "3\r\nabc\n"s, "3\r\nabc\r0"s, "3;a\nb\r\n"s, "3;a\0"s, "3,\r\n"s,
        "0\r\nA: b\n\r\n"s, "0\r\n\rx"s, "0\r\nA\x01"s}) {
    EXPECT_FALSE(decode(text)) << text;
  }
}

TEST(ChunkDecoder, RefusesSizesBeyondCounting) {
  EXPECT_TRUE(decode("7fffffffffffffff\r\na"));
  EXPECT_FALSE(decode("8000000000000000\r\na"));
  EXPECT_FALSE(decode("10000000000000000\r\na"));
  EXPECT_TRUE(decode(std::string(40, '0') + "1\r\na"));
}

TEST(ChunkDecoder, LimitsWhatItDrops) {
  EXPECT_TRUE(decode("1;" + std::string(16'000, 'x') + "\r\na"));
  EXPECT_FALSE(decode("1;" + std::string(17'000, 'x') + "\r\na"));
  EXPECT_FALSE(decode("0\r\n" + std::string(17'000, 'x') + "\r\n\r\n"));
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += "1;ab\r\nx\r\n";
  EXPECT_FALSE(decode(many));
}

}  // namespace
}  // namespace fovea::serve
