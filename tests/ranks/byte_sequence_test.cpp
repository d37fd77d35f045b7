#include "ranks/byte_sequence.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

namespace fovea::ranks {
namespace {

class ByteSequences : public ::testing::Test {
 protected:
  /// 0 1 2 | nothing | 3 4 | 5
  ByteSequences() {
    int next = 0;
    for (auto& value : memory_) value = static_cast<std::byte>(next++);
    const auto all = std::span(memory_);
    for (const auto part : {all.first(3), all.first(0), all.subspan(3, 2), all.subspan(5, 1)}) {
      sequence_.append(part);
    }
  }
  std::array<std::byte, 6> memory_{};
  ByteSequence sequence_;
};

TEST_F(ByteSequences, AreReadFromAnyOffset) {
  EXPECT_EQ(sequence_.size(), 6U);
  for (std::size_t offset = 0; offset < 7; ++offset) {
    for (std::size_t count = 0; count < 8; ++count) {
      std::vector<std::byte> out(count, std::byte{99});
      sequence_.read(offset, out);
      for (std::size_t i = 0; i < count; ++i) {
        const auto expected = offset + i < 6 ? static_cast<std::byte>(offset + i) : std::byte{99};
        EXPECT_EQ(out[i], expected) << offset << ' ' << count << ' ' << i;
      }
    }
  }
}

TEST_F(ByteSequences, AreWrittenAsFarAsTheyGo) {
  const std::vector<std::byte> bytes(5, std::byte{7});
  sequence_.write(2, bytes);
  EXPECT_EQ(memory_, (std::array{std::byte{0}, std::byte{1}, std::byte{7}, std::byte{7},
                                 std::byte{7}, std::byte{7}}));
}

}  // namespace
}  // namespace fovea::ranks
