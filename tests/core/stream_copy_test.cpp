// Copies that bypass the caches: every alignment and length, and nothing around them.
#include "core/stream_copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace fovea {
namespace {

constexpr std::size_t kMargin = 64;
constexpr std::byte kUntouched{0xEE};

TEST(StreamCopy, CopiesAnyLengthBetweenAnyAddressesAndNothingElse) {
  std::vector<std::byte> source(512);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7 + 1);
  for (std::size_t bytes : {0u, 1u, 15u, 63u, 64u, 65u, 127u, 128u, 200u, 384u}) {
    for (std::size_t from = 0; from < kMargin; from += 13) {
      for (std::size_t to = 0; to < kMargin; to += 5) {
        std::vector<std::byte> target(to + bytes + kMargin, kUntouched);
        stream_copy(target.data() + to, source.data() + from, bytes);
        std::vector<std::byte> expected(target.size(), kUntouched);
        for (std::size_t i = 0; i < bytes; ++i) expected[to + i] = source[from + i];
        ASSERT_EQ(target, expected) << bytes << " bytes from " << from << " to " << to;
      }
    }
  }
}

}  // namespace
}  // namespace fovea
