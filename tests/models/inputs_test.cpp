// Input buffers by name: claimed for writing, read as tensors.
#include "fovea/tower/models/inputs.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace fovea {
namespace {

TEST(NamedTensors, AreFoundByNameAndKeepTheirOrder) {
  std::byte memory[2];
  NamedTensors tensors;
  tensors.add("b", {&memory[0], DType::kU8, {1}});
  tensors.add("a", {&memory[1], DType::kU8, {1}});
  EXPECT_EQ(tensors["a"].data, &memory[1]);
  EXPECT_EQ(tensors.entries().front().first, "b");
  test::expect_error(ErrorCode::kInternal, "no input buffer is named \"c\"",
                     [&] { (void)tensors["c"]; });
}

/// A buffer "rows" of [3, 2] i32.
class InputWriterTest : public ::testing::Test {
 protected:
  BufferDecl decl_{"rows", DType::kI32, {3, 2}};
  std::byte memory_[24] = {};
  InputWriter::Slot slot_{.decl = &decl_, .memory = memory_};
  std::vector<InputWriter::Copy> copies_;
  InputWriter writer_{{&slot_, 1}, copies_};
};

TEST_F(InputWriterTest, AClaimIsTheFrontOfTheBuffer) {
  const TensorView rows = writer_.claim("rows", 2);
  EXPECT_EQ(rows.data, memory_);
  EXPECT_EQ(rows.dtype, DType::kI32);
  EXPECT_EQ(rows.shape, (Shape{2, 2}));
  EXPECT_EQ(slot_.rows_written, 2);
  EXPECT_FALSE(slot_.too_small);
}

TEST_F(InputWriterTest, ClaimsOfMoreThanTheBufferHoldsAreRefusedAndNoted) {
  test::expect_error(ErrorCode::kUnavailable, "input \"rows\" holds 3 rows, the batch needs 4",
                     [&] { (void)writer_.claim("rows", 4); });
  EXPECT_TRUE(slot_.too_small);
  EXPECT_EQ(slot_.rows_written, -1);
}

TEST_F(InputWriterTest, UnknownNamesAreRefused) {
  test::expect_error(ErrorCode::kInternal, "no input buffer is named \"other\"",
                     [&] { (void)writer_.claim("other", 1); });
}

TEST_F(InputWriterTest, CopiesAreNotedForLaterAndEmptyOnesLeftOut) {
  const std::vector<std::uint8_t> bytes{1, 2};
  writer_.copy(memory_, bytes);
  writer_.copy(memory_ + 2, {});
  ASSERT_EQ(copies_.size(), 1u);
  EXPECT_EQ(copies_[0].to, memory_);
  EXPECT_EQ(copies_[0].from.data(), bytes.data());
  EXPECT_EQ(memory_[0], std::byte{0});
}

}  // namespace
}  // namespace fovea
