#include "serve/http/body_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string>

namespace fovea::serve {
namespace {

std::string text_of(const BodyBytes& bytes) { return {bytes.begin(), bytes.end()}; }

TEST(BodyBytes, GrowAtTheirEnd) {
  BodyBytes bytes("ab");
  bytes.append("");
  bytes.append("cd");
  EXPECT_EQ(text_of(bytes), "abcd");
  bytes.reserve(2);
  EXPECT_GE(bytes.capacity(), 4U) << "they never shrink";
  bytes.reserve(10);
  ASSERT_EQ(bytes.room().size(), 6U);
  std::ranges::fill(bytes.room(), std::uint8_t{'x'});
  EXPECT_EQ(text_of(bytes), "abcd") << "nothing is there before it is committed";
  bytes.commit(3);
  EXPECT_EQ(text_of(bytes), "abcdxxx");
}

TEST(BodyBytes, KeepTheirContentsWhereverTheirMemoryGoes) {
  BodyBytes bytes;
  EXPECT_TRUE(bytes.empty());
  std::string expected;
  for (std::size_t size = 1; size < (std::size_t{8} << 20); size *= 2) {
    const std::string piece(size, static_cast<char>('a' + size % 25));
    bytes.append(piece);
    expected += piece;
  }
  EXPECT_TRUE(text_of(bytes) == expected);
  EXPECT_EQ(std::span<const std::uint8_t>(bytes).size(), expected.size());
}

TEST(BodyBytes, StayAsTheyAreWithoutMemory) {
  BodyBytes bytes("ab");
  EXPECT_THROW(bytes.reserve(std::numeric_limits<std::size_t>::max() / 2), std::bad_alloc);
  EXPECT_EQ(text_of(bytes), "ab");
}

}  // namespace
}  // namespace fovea::serve
