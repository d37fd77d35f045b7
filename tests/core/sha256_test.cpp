#include "core/sha256.h"

#include <gtest/gtest.h>

#include <array>

namespace fovea {
namespace {

// Source: NIST, "SHA-256 Examples".
TEST(Sha256, KnowsTheExamplesOfTheStandard) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, TakesBytesPieceByPiece) {
  Sha256 hash;
  for (const char* piece : {"a", "", "bc"}) hash.add(piece);
  EXPECT_EQ(hash.hex(), sha256_hex("abc"));
}

TEST(ToHex, GivesTwoLowerCaseDigitsForAByte) {
  EXPECT_EQ(to_hex(std::array{std::byte{0x0f}, std::byte{0xa0}}), "0fa0");
  EXPECT_EQ(to_hex({}), "");
}

TEST(Sha256, GivesBytesInTheOrderOfTheDigits) {
  EXPECT_EQ(sha256("abc")[0], std::byte{0xba});
  EXPECT_EQ(sha256("abc")[31], std::byte{0xad});
}

}  // namespace
}  // namespace fovea
