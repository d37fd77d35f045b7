// Keys of items: the worked ones, and what they must tell apart.
#include "cache/content_key.h"

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
      "def9953836c0aa2f539dc123f284bd3ce6953bbf189565f2e59f6f8c08aba329");
}

TEST(ContentKey, DoesNotDependOnTheOrderOfOptions) {
  EXPECT_EQ(key_of({"m0", Modality::kImage, R"({ "min_pixels": 3136, "max_pixels": 12845056 })"},
                   "hello"),
            "def9953836c0aa2f539dc123f284bd3ce6953bbf189565f2e59f6f8c08aba329");
}

TEST(ContentKey, TellsAVideoFromAnImage) {
  EXPECT_EQ(
      key_of({"m0", Modality::kVideo, R"({"max_pixels":12845056,"min_pixels":3136})"}, "hello"),
      "c7c7cc9e18ce6d1f7e0af1c98ea77fac712ce4f8719425684812d1333ffdf744");
}

TEST(ContentKey, TellsEqualPixelsOfAnotherShapeApart) {
  const std::string pixels("\0\1\2\3\4\5\6\7\10\11\12\13", 12);
  const auto of_shape = [&](const std::vector<std::uint64_t>& shape) {
    return key_of({.model = "m0", .shape = shape, .element = "u8"}, pixels);
  };
  EXPECT_EQ(of_shape({2, 2, 3}),
            "e6b527251fe8857163c071bd75c1f3d15c7bd7195ca9fae68d235042396914c3");
  EXPECT_EQ(of_shape({1, 4, 3}),
            "4111e5024780d564382b390c8f27a102d0d91ffc52edaea3c27aec1d7233ea9c");
}

TEST(ContentKey, IsTheHashOfTaggedFields) {
  const ContentFields fields{.model = "m0"};
  constexpr std::string_view kInput(
      "fovea-ec-key-v1\0"
      "\1\2\0\0\0\0\0\0\0m0"
      "\2\5\0\0\0\0\0\0\0image"
      "\3\2\0\0\0\0\0\0\0{}"
      "\7\0\0\0\0\0\0\0\0",
      61);
  const std::vector<std::uint8_t> input(kInput.begin(), kInput.end());
  EXPECT_EQ(key_of(fields, ""), "5ef279d73125042f7c1d2069bed6738570f200fb4d9416bcd494ffc54b511918");
  EXPECT_EQ(key_of(fields, ""), test::sha256_hex(input));
}

TEST(ContentKey, TellsAnAdapterFromNone) {
  EXPECT_EQ(key_of({.model = "m0", .adapter = "lora-7"}, "hello"),
            "961fc3b1a7d1f796cca1f79182633912b0744b154c555defd2d698aae98bb6de");
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
