#include "serve/service/vllm_digest.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "serve/api_error.h"
#include "support/expect_error.h"

namespace fovea::serve {
namespace {

const std::optional<JsonView> kNone;

/// A document of options.
JsonDocument options_of(const std::string& text) { return JsonDocument::parse(text, "options"); }

// The expected digests come from hashlib of Python, over bytes put together by a script of ten
// lines that shares nothing with the code under test.
TEST(VllmDigest, IsThatOfVllmForProcessorOptions) {
  const JsonDocument options =
      options_of(R"({"max_pixels": 1003520, "size": {"a": 1.5}, "flag": true})");
  const DigestInput input{"org/model", "image", "0123", kNone, options.root()};
  EXPECT_EQ(vllm_digest(DigestKind::kSha256, input),
            "0f86defa90db22c8eb9954723237c9f8bae3d12d186ca46342cee216bdd35a4e");
  EXPECT_EQ(vllm_digest(DigestKind::kSha512, input),
            "dc84b96f09420aab0819b75e1aa4e39ef6052170351598920e2ae9e199d9d0a9"
            "31b64ea272c10632a12b272965a922261e6d1b2bcde52f4efcf875e2b0487390");
}

// By MultiModalHasher.hash_kwargs of vLLM 0.32.0.
TEST(VllmDigest, IsThatOfVllmUnderItsDefaultHash) {
  const JsonDocument image =
      options_of(R"({"max_pixels": 1003520, "size": {"a": 1.5}, "flag": true})");
  EXPECT_EQ(vllm_digest(DigestKind::kBlake3, {"org/model", "image", "0123", kNone, image.root()}),
            "a4b83c0abd35773c9abb06953dcd153d02a6ee2304b1bf93f3d0fda8281e2e85");
  const JsonDocument video = options_of(R"({"fps": [2.0, 1.0]})");
  EXPECT_EQ(vllm_digest(DigestKind::kBlake3, {"org/m", "video", "clip-1", kNone, video.root()}),
            "5b984b9f07c2852fe18ed9159316bf06af6c2657edf9c0bd6e8b66133eb0e92c");
}

TEST(VllmDigest, KeepsTheOrderOfMembersAndSortsNames) {
  const JsonDocument media = options_of(R"({"fps": 2, "frames": [1, -2, null, ""], "off": false})");
  const JsonDocument processor = options_of(R"({"b": "x", "a": "\u00e9"})");
  const DigestInput input{"org/model", "video", "clip 1", media.root(), processor.root()};
  EXPECT_EQ(vllm_digest(DigestKind::kSha256, input),
            "753e02b1f8a59694ff5f5c1ed4e2cdd15c4f2873597a0d540a88eb1379164ed8");
  const JsonDocument other_order = options_of(R"({"a": "\u00e9", "b": "x"})");
  EXPECT_NE(vllm_digest(DigestKind::kSha256,
                        {"org/model", "video", "clip 1", media.root(), other_order.root()}),
            vllm_digest(DigestKind::kSha256, input));
}

TEST(VllmDigest, LeavesOutOptionsThatAreNotThere) {
  const JsonDocument media = options_of(R"({"rgba_background_color": [255, 255, 255]})");
  const std::string expected = "a744d6687ac0354d9b3e3763b5e1f965154e3dee8ff72ea8a1d542acea0c1475";
  EXPECT_EQ(vllm_digest(DigestKind::kSha256, {"", "image", "u", media.root(), kNone}), expected);
  EXPECT_EQ(
      vllm_digest(DigestKind::kSha256, {"", "image", "u", media.root(), options_of("{}").root()}),
      expected);
}

TEST(VllmDigest, TellsNumbersApartAsPythonDoes) {
  const auto digest = [](const char* value) {
    const JsonDocument options = options_of(std::string("{\"a\": ") + value + "}");
    return vllm_digest(DigestKind::kSha256, {"m", "image", "u", kNone, options.root()});
  };
  EXPECT_NE(digest("1"), digest("1.0"));
  EXPECT_NE(digest("1"), digest("true"));
  EXPECT_NE(digest("[]"), digest("{}"));
}

TEST(VllmDigest, RefusesNumbersBeyond64Bits) {
  const JsonDocument options = options_of(R"({"a": 18446744073709551615})");
  EXPECT_THROW((void)vllm_digest(DigestKind::kSha256, {"m", "image", "u", kNone, options.root()}),
               ApiError);
}

TEST(VllmDigest, KnowsTheNamesOfHashes) {
  EXPECT_EQ(digest_kind("blake3"), DigestKind::kBlake3);
  EXPECT_EQ(digest_kind("sha256"), DigestKind::kSha256);
  EXPECT_EQ(digest_kind("sha512"), DigestKind::kSha512);
  test::expect_error(ErrorCode::kInvalidArgument, "got md5", [] { (void)digest_kind("md5"); });
}

TEST(HexDigest, IsSha256) {
  EXPECT_EQ(hex_digest(DigestKind::kSha256, ""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace fovea::serve
