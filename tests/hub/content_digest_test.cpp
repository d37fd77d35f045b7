#include "hub/content_digest.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace fovea::hub {
namespace {

bool matches(const std::string& etag, std::string_view content, std::uint64_t size) {
  ContentDigest digest(etag, size);
  const auto bytes = std::as_bytes(std::span(content.data(), content.size()));
  digest.add(bytes.first(bytes.size() / 2));  // piece by piece
  digest.add(bytes.subspan(bytes.size() / 2));
  EXPECT_EQ(digest.bytes(), content.size());
  return digest.matches();
}

// What `printf abc | sha256sum` and `printf 'hello\n' | git hash-object --stdin` print.
const std::string kSha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const std::string kGit = "ce013625030ba8dba906f756967f9e9ca394464a";

TEST(ContentDigest, OfTheLargeStorageIsSha256) {
  EXPECT_TRUE(matches(kSha256, "abc", 3));
  EXPECT_FALSE(matches(kSha256, "abd", 3));
}

TEST(ContentDigest, OfSmallFilesIsThatOfGit) {
  EXPECT_TRUE(matches(kGit, "hello\n", 6));
  EXPECT_FALSE(matches(kGit, "hellO\n", 6));
}

TEST(ContentDigest, OtherLengthsNeverMatch) {
  EXPECT_FALSE(matches(kSha256, "abc", 4));
  EXPECT_FALSE(matches(kGit, "hello\n", 5));
  EXPECT_FALSE(matches("a-mirror", "abc", 2));
}

TEST(ContentDigest, KnowsTheLengthAloneOfAnEtagThatIsNone) {
  EXPECT_FALSE(ContentDigest::is_digest("a-mirror"));
  EXPECT_FALSE(ContentDigest::is_digest(std::string(40, 'g')));
  EXPECT_TRUE(ContentDigest::is_digest(kGit));
  EXPECT_TRUE(matches("a-mirror", "abc", 3));
}

}  // namespace
}  // namespace fovea::hub
