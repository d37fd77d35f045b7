// Keys of items: the worked ones, and what they must tell apart.
#include "rows/content_key.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/sha256.h"

namespace fovea {
namespace {

std::string key_of(const ContentFields& fields, std::string_view content) {
  ContentKey key(fields, content.size());
  key.add(std::as_bytes(std::span(content)));
  return key.hex();
}

TEST(ContentKey, IsTheWorkedOneOfAnEncodedImage) {
  EXPECT_EQ(
      key_of({"m0", Modality::kImage, R"({"max_pixels":12845056,"min_pixels":3136})"}, "hello"),
      "f37b4e293d194b31245f8cd5921b05e60c60c24abd43b566d40a0ce76a39b334");
}

TEST(ContentKey, DoesNotDependOnTheOrderOfOptions) {
  EXPECT_EQ(key_of({"m0", Modality::kImage, R"({ "min_pixels": 3136, "max_pixels": 12845056 })"},
                   "hello"),
            "f37b4e293d194b31245f8cd5921b05e60c60c24abd43b566d40a0ce76a39b334");
}

TEST(ContentKey, TellsAVideoFromAnImage) {
  EXPECT_EQ(
      key_of({"m0", Modality::kVideo, R"({"max_pixels":12845056,"min_pixels":3136})"}, "hello"),
      "f5460d84525bc265d10c8a78971d9462a3aa42a2c51af0154ba314e5d8a90e3a");
}

TEST(ContentKey, TellsEqualPixelsOfAnotherShapeApart) {
  const std::string pixels("\0\1\2\3\4\5\6\7\10\11\12\13", 12);
  const auto of_shape = [&](const std::vector<std::uint64_t>& shape) {
    return key_of({.model = "m0", .shape = shape, .element = "u8"}, pixels);
  };
  EXPECT_EQ(of_shape({2, 2, 3}),
            "09eb09c661ca59e3bc138ba2fc231ed336a8ce1b37fd0d64d44b11d55a0b4f60");
  EXPECT_EQ(of_shape({1, 4, 3}),
            "ec3395e055009c6d46adb1cb25d51c35320153650a511ba26ecfa8cfdf1be799");
}

TEST(ContentKey, IsTheHashOfTaggedFields) {
  const ContentFields fields{.model = "m0"};
  constexpr std::string_view kInput(
      "fovea-ec-key-v2\0"
      "\1\2\0\0\0\0\0\0\0m0"
      "\2\5\0\0\0\0\0\0\0image"
      "\3\2\0\0\0\0\0\0\0{}"
      "\7\0\0\0\0\0\0\0\0",
      61);
  const std::vector<std::uint8_t> input(kInput.begin(), kInput.end());
  EXPECT_EQ(key_of(fields, ""), "4e8547767fa875d62ed5094fcf9445431f86c628db0816e11d4d63b87fab7b06");
  EXPECT_EQ(key_of(fields, ""), test::sha256_hex(input));
}

TEST(ContentKey, MakesJsonCanonical) {
  constexpr std::string_view kOptions =
      R"( {"fps": 2.0, "b": {"d": 1.50, "c": [2, {"f": null, "e": true}]}, "a": "\u00e9\n\u001f"} )";
  const std::string canonical =
      R"({"a":"\u00e9\n\u001f","b":{"c":[2,{"e":true,"f":null}],"d":1.5},"fps":2.0})";
  std::string input = std::string("fovea-ec-key-v2\0\1\2\0\0\0\0\0\0\0m0", 27) +
                      std::string("\2\5\0\0\0\0\0\0\0image\3", 15);
  std::string text = canonical;
  text.replace(text.find("\\u00e9"), 6, "\u00e9");  // UTF-8
  input += static_cast<char>(text.size()) + std::string(7, '\0') + text;
  input += std::string("\7\0\0\0\0\0\0\0\0", 9);
  EXPECT_EQ(key_of({.model = "m0", .options = kOptions}, ""),
            test::sha256_hex(std::vector<std::uint8_t>(input.begin(), input.end())));
}

TEST(ContentKey, TellsAnAdapterFromNone) {
  EXPECT_EQ(key_of({.model = "m0", .adapter = "lora-7"}, "hello"),
            "873bfdfe3d71e7323aa6e2e0d8905f1cd04bbd1d3ba2ea2afd789347f4104da0");
}

TEST(ContentKey, TakesContentInPieces) {
  const ContentFields fields{.model = "m0"};
  ContentKey key(fields, 5);
  for (const char c : std::string_view("hello")) key.add(std::as_bytes(std::span(&c, 1)));
  EXPECT_EQ(key.hex(), key_of(fields, "hello"));
}

TEST(ContentKey, RefusesContentOfAnotherSize) {
  ContentKey key({.model = "m0"}, 5);
  test::expect_error(ErrorCode::kInternal, "another number of bytes", [&] { (void)key.hex(); });
}

}  // namespace
}  // namespace fovea
