#include "core/blake3.h"

#include <gtest/gtest.h>

#include <string>

#include "core/sha256.h"

namespace fovea {
namespace {

/// The input of the algorithm's own test vectors: 0, 1, ... 250 over and over.
std::string bytes_of(std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(i % 251);
  return bytes;
}

struct Case {
  std::size_t count;
  const char* digest;
};

class Blake3 : public testing::TestWithParam<Case> {};

// By the package blake3 1.0.11 of PyPI. Counts on both sides of a block, a chunk and of levels of
// the tree, and trees that are not full.
TEST_P(Blake3, IsThatOfTheReference) {
  EXPECT_EQ(to_hex(blake3(bytes_of(GetParam().count))), GetParam().digest);
}

INSTANTIATE_TEST_SUITE_P(
    Counts, Blake3,
    testing::Values(Case{0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
                    Case{1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
                    Case{64, "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98"},
                    Case{65, "de1e5fa0be70df6d2be8fffd0e99ceaa8eb6e8c93a63f2d8d1c30ecb6b263dee"},
                    Case{1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"},
                    Case{1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"},
                    Case{2048, "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a"},
                    Case{2049, "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030"},
                    Case{3072, "b98cb0ff3623be03326b373de6b9095218513e64f1ee2edd2525c7ad1e5cffd2"},
                    Case{5121, "628bd2cb2004694adaab7bbd778a25df25c47b9d4155a55f8fbd79f2fe154cff"},
                    Case{31744, "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47"},
                    Case{100000,
                         "d93c23eedaf165a7e0be908ba86f1a7a520d568d2d13cde787c8580c5c72cc54"}));

}  // namespace
}  // namespace fovea
