// Rows reach their targets unchanged, whatever memory they come from, in pieces or not, with others
// on the way or not, and in the order of the caller's streams.
#include "rows/row_mover.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

#include "core/row_dtype.h"
#include "device/cpu/cpu_device.h"
#include "engine/rows/host_room.h"
#include "graph/deferred_device.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

/// More than both pinned buffers hold, in f32.
constexpr std::int64_t kManyRows = 9'001;
constexpr std::int64_t kWidth = 1'024;
/// Behind so many random values they come again; no number of rows has as many.
constexpr std::size_t kPeriod = 10'007;

/// Items of `num_rows` rows each on a device, lying one after the other.
class Rows {
 public:
  Rows(Device& device, DType dtype, const std::vector<std::int64_t>& num_rows, unsigned seed) {
    std::int64_t total = 0;
    for (const std::int64_t rows : num_rows) total += rows;
    const auto count = static_cast<std::size_t>(total * kWidth);
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-2.0f, 2.0f);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = i < kPeriod ? uniform(random) : values[i - kPeriod];
    }
    host_.resize(count * size_of(dtype));
    narrow_from_f32(values.data(), dtype, host_.data(), count);
    memory_ = device.allocate(host_.size());
    std::copy(host_.begin(), host_.end(), memory_.data());
    std::byte* next = memory_.data();
    for (const std::int64_t rows : num_rows) {
      views_.push_back({next, dtype, {rows, kWidth}});
      next += views_.back().bytes();
    }
    results_.resize(num_rows.size());
  }

  [[nodiscard]] std::span<const TensorView> views() const { return views_; }
  [[nodiscard]] std::vector<RowMove> moves(RowDType dtype) {
    std::vector<RowMove> moves;
    for (std::size_t i = 0; i < views_.size(); ++i) {
      moves.emplace_back(views_[i], RowTarget{.result = &results_[i], .dtype = dtype});
    }
    return moves;
  }
  [[nodiscard]] std::vector<ExpectedRows> expected(RowDType dtype) {
    std::vector<ExpectedRows> expected;
    for (const RowMove& move : moves(dtype)) {
      expected.push_back({move.rows.rows, move.rows.width, move.target});
    }
    return expected;
  }
  [[nodiscard]] std::vector<Embedding>& results() { return results_; }

  void expect_arrived(RowDType dtype) const {
    for (std::size_t i = 0; i < views_.size(); ++i) {
      const Embedding& result = results_[i];
      EXPECT_EQ(result.rows, views_[i].shape[0]);
      EXPECT_EQ(result.width, kWidth);
      EXPECT_EQ(result.dtype, dtype);
      const auto count = static_cast<std::size_t>(views_[i].shape.elements());
      RowBytes expected(count * size_of(to_dtype(dtype)));
      convert_rows(views_[i].dtype, host_.data() + (views_[i].data - memory_.data()), dtype,
                   expected.data(), count);
      EXPECT_TRUE(result.data == expected) << "item " << i;
    }
  }

 private:
  std::vector<std::byte> host_;
  Buffer memory_;
  std::vector<TensorView> views_;
  std::vector<Embedding> results_;
};

class RowMoverTest : public ::testing::TestWithParam<bool> {
 protected:
  RowMoverTest() {
    if (GetParam()) {
      device_ = std::make_unique<test::DeferredDevice>(*kernels_, test::Schedule::kLast);
    } else {
      device_ = make_cpu_device(1, *kernels_);
    }
  }

  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::unique_ptr<Device> device_;
};

TEST_P(RowMoverTest, ConvertsEveryPairOfTypes) {
  RowMover mover(*device_);
  for (const DType from : {DType::kF32, DType::kBF16}) {
    for (const RowDType to : {RowDType::kFloat32, RowDType::kBFloat16, RowDType::kFloat16}) {
      Rows rows(*device_, from, {3, 200, 1}, 1);
      mover.move(rows.moves(to), nullptr);
      mover.finish();
      rows.expect_arrived(to);
    }
  }
}

TEST_P(RowMoverTest, RowsThatAreExpectedHaveMemoryBeforeTheyMoveAndArriveThere) {
  const bool is_host = !GetParam();  // there is nobody to wait for
  RowMover mover(*device_);
  Rows rows(*device_, DType::kBF16, {3, 200, 1}, 1);
  mover.expect(rows.expected(RowDType::kFloat32));
  mover.move({}, nullptr);  // waits for the memory
  std::vector<const std::byte*> memory;
  for (const Embedding& result : rows.results()) {
    EXPECT_EQ(result.data.empty(), is_host);
    memory.push_back(result.data.data());
  }
  mover.move(rows.moves(RowDType::kFloat32), nullptr);
  mover.finish();
  rows.expect_arrived(RowDType::kFloat32);
  for (std::size_t i = 0; i < memory.size() && !is_host; ++i)
    EXPECT_EQ(rows.results()[i].data.data(), memory[i]);
}

TEST_P(RowMoverTest, RowsThatDoNotComeLeaveNoMemory) {
  RowMover mover(*device_);
  Rows rows(*device_, DType::kBF16, {3, 200, 1}, 1);
  for (const bool abandons : {false, true}) {
    mover.expect(rows.expected(RowDType::kFloat32));
    if (abandons) {
      mover.abandon();
    } else {
      mover.expect_nothing();
    }
    for (const Embedding& result : rows.results()) EXPECT_TRUE(result.data.empty());
  }
}

TEST_P(RowMoverTest, WhatIsExpectedButHasNoMemoryIsLeftToTheMove) {
  RowMover mover(*device_);
  Rows rows(*device_, DType::kBF16, {3}, 1);
  constexpr std::int64_t kTooMany = std::int64_t{1} << 48;
  mover.expect({{kTooMany, kWidth, {.result = &rows.results()[0]}}});
  mover.move(rows.moves(RowDType::kFloat32), nullptr);  // others than expected
  mover.finish();
  rows.expect_arrived(RowDType::kFloat32);
}

TEST(RowMover, TakesPinnedMemoryWhenRowsGoToTheHostAndNoScratchForOps) {
  const auto kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  test::DeferredDevice device(*kernels, test::Schedule::kLast);
  RowMover mover(device);
  EXPECT_EQ(device.host_bytes(), 0U) << "pinned memory, before rows go to the host";
  Rows rows(device, DType::kF32, {1}, 1);
  mover.move(rows.moves(RowDType::kFloat32), nullptr);
  mover.finish();
  EXPECT_GT(device.host_bytes(), 0U);
  EXPECT_EQ(device.num_op_streams(), 0);
}

TEST_P(RowMoverTest, TakesMoreThanItsBuffersHold) {
  RowMover mover(*device_);
  Rows rows(*device_, DType::kF32, {1, kManyRows, 40}, 2);
  mover.move(rows.moves(RowDType::kFloat32), nullptr);
  mover.finish();
  rows.expect_arrived(RowDType::kFloat32);
}

TEST_P(RowMoverTest, ItemsWithoutRowsAndNoItemsAreFine) {
  RowMover mover(*device_);
  Rows none(*device_, DType::kF32, {}, 3);
  mover.move(none.moves(RowDType::kFloat32), nullptr);
  Rows rows(*device_, DType::kF32, {0, 5, 0}, 3);
  mover.move(rows.moves(RowDType::kFloat32), nullptr);
  mover.finish();
  rows.expect_arrived(RowDType::kFloat32);
  Rows empty(*device_, DType::kF32, {0}, 3);
  mover.move(empty.moves(RowDType::kBFloat16), nullptr);
  mover.finish();
  empty.expect_arrived(RowDType::kBFloat16);
}

TEST_P(RowMoverTest, RowsMovedBeforeAreThereWhenTheNextAreMoved) {
  RowMover mover(*device_);
  Rows first(*device_, DType::kBF16, {kManyRows}, 4);
  Rows second(*device_, DType::kBF16, {70, 30}, 5);
  mover.move(first.moves(RowDType::kFloat32), nullptr);
  mover.move(second.moves(RowDType::kFloat32), nullptr);
  first.expect_arrived(RowDType::kFloat32);
  mover.finish();
  second.expect_arrived(RowDType::kFloat32);
  mover.finish();  // nothing is left to wait for
}

TEST_P(RowMoverTest, RowsThatNoMemoryHoldsAreAnError) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the operator new of the thread sanitizer ends the program instead of throwing";
#endif
  RowMover mover(*device_);
  Rows rows(*device_, DType::kF32, {1}, 7);
  TensorView huge = rows.views().front();
  huge.shape = {std::int64_t{1} << 45, 1};
  test::expect_error(ErrorCode::kOutOfMemory, "no memory for the 140737488355328 bytes", [&] {
    std::vector<RowMove> moves = rows.moves(RowDType::kFloat32);
    moves.front().rows = packed_rows(huge);
    mover.move(std::move(moves), nullptr);
    mover.finish();
  });
  mover.move(rows.moves(RowDType::kFloat32), nullptr);
  mover.finish();
  rows.expect_arrived(RowDType::kFloat32);
}

TEST_P(RowMoverTest, SomeGoToBlocksOfTheCaller) {
  RowMover mover(*device_);
  Rows rows(*device_, DType::kBF16, {3, kManyRows, 2}, 8);
  const test::HostRoom room(kManyRows + 1, kWidth, RowDType::kFloat16, 6);
  std::vector<RowMove> moves = rows.moves(RowDType::kFloat16);
  moves[1].target.block = &room.block();
  mover.move(std::move(moves), nullptr);
  mover.finish();
  EXPECT_TRUE(rows.results()[1].data.empty());
  Rows same(*device_, DType::kBF16, {3, kManyRows, 2}, 8);
  mover.move(same.moves(RowDType::kFloat16), nullptr);
  mover.finish();
  same.expect_arrived(RowDType::kFloat16);
  room.expect_rows(same.results()[1]);
  EXPECT_EQ(rows.results()[2].data, same.results()[2].data);
}

TEST_P(RowMoverTest, TimeIsSharedByRows) {
  RowMover mover(*device_);
  Rows rows(*device_, DType::kF32, {10, 0, 30}, 6);
  mover.move(rows.moves(RowDType::kFloat32), nullptr);
  mover.finish();
  EXPECT_GT(rows.results()[0].times.output_ms, 0);
  EXPECT_EQ(rows.results()[1].times.output_ms, 0);
  EXPECT_DOUBLE_EQ(rows.results()[2].times.output_ms, 3 * rows.results()[0].times.output_ms);
}

TEST_P(RowMoverTest, RowsOnTheHostAreConvertedToResultsAndBlocks) {
  RowMover mover(*device_);
  Rows rows(*device_, DType::kBF16, {3, 300}, 9);
  const test::HostRoom room(300, kWidth, RowDType::kFloat32, 8);
  std::vector<RowMove> moves = rows.moves(RowDType::kFloat32);
  for (RowMove& move : moves) move.source = RowMove::Source::kHost;
  moves[1].target.block = &room.block();
  mover.move(std::move(moves), nullptr);
  mover.finish();
  Rows same(*device_, DType::kBF16, {3, 300}, 9);
  mover.move(same.moves(RowDType::kFloat32), nullptr);
  mover.finish();
  same.expect_arrived(RowDType::kFloat32);
  EXPECT_EQ(rows.results()[0].data, same.results()[0].data);
  room.expect_rows(same.results()[1]);
}

INSTANTIATE_TEST_SUITE_P(Devices, RowMoverTest, ::testing::Bool(),
                         [](const auto& device) { return device.param ? "deferred" : "cpu"; });

/// Rows between memories of a caller, on a device whose queues run as late as they may.
class MovedBlocks : public ::testing::Test {
 protected:
  /// A matrix of the caller with a gap behind each row.
  struct Matrix {
    explicit Matrix(int device, float first = -1, RowDType dtype = RowDType::kFloat32) {
      for (float& value : values) value = first++;
      block = {.data = values.data(),
               .device = device,
               .dtype = dtype,
               .row_stride_bytes = kStride,
               .rows = kRows};
    }
    Matrix(const Matrix&) = delete;
    Matrix& operator=(const Matrix&) = delete;
    [[nodiscard]] float at(std::int64_t row, std::int64_t column) const {
      return values[static_cast<std::size_t>(row * kStride) / sizeof(float) +
                    static_cast<std::size_t>(column)];
    }
    std::array<float, 40> values{};
    RowBlock block;
  };
  static constexpr std::int64_t kRows = 5;
  static constexpr std::int64_t kColumns = 6;
  static constexpr std::int64_t kStride = 8 * sizeof(float);

  [[nodiscard]] CallerStream named(const std::unique_ptr<Stream>& stream) const {
    return {.device = 0, .handle = static_cast<test::DeferredStream*>(stream.get())};
  }
  void move(const RowBlock& from, const RowTarget& to) {
    std::vector<RowMove> moves;
    moves.emplace_back(from, kColumns, to);
    mover_.move(std::move(moves), &mover_.queue());
  }
  /// Lets a stream write to a matrix when it gets there.
  static void write_late(Stream& stream, Matrix& matrix) {
    static_cast<test::DeferredStream&>(stream).submit([&] { matrix.values.fill(7); });
  }

  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  test::DeferredDevice device_{*kernels_, test::Schedule::kLast};
  std::unique_ptr<Stream> callers_ = device_.create_copy_stream();
  std::unique_ptr<Stream> others_ = device_.create_copy_stream();
  RowMover mover_{device_};
  Embedding result_;
};

TEST_F(MovedBlocks, OfGpusAreReadWhenTheStreamHasComeToThem) {
  Matrix from(0);
  Matrix to(0);
  write_late(*callers_, from);
  mover_.attach(std::array{named(callers_)});
  move(from.block, {&result_, &to.block});
  mover_.finish();
  EXPECT_EQ(to.at(0, 0), -1) << "nothing has run yet";
  callers_->synchronize();
  EXPECT_EQ(to.at(kRows - 1, kColumns - 1), 7);
  EXPECT_EQ(to.at(0, kColumns), Matrix(0).at(0, kColumns)) << "between the rows";
}

TEST_F(MovedBlocks, OfGpusComeToTheHostWithoutWhatLiesBetweenTheirRows) {
  Matrix from(0, 1);
  write_late(*callers_, from);
  mover_.attach(std::array{named(callers_)});
  move(from.block, {.result = &result_});
  mover_.finish();
  ASSERT_EQ(result_.rows, kRows);
  ASSERT_EQ(result_.data.size(), kRows * kColumns * sizeof(float));
  EXPECT_EQ(result_.at(0, 0), 7);
  EXPECT_EQ(result_.at(kRows - 1, kColumns - 1), 7);
}

TEST_F(MovedBlocks, OfTheHostAreConvertedThereAndUploaded) {
  const Matrix from(RowBlock::kHost, 1);
  std::array<std::uint16_t, kRows * kColumns> narrow{};
  const RowBlock to{
      .data = narrow.data(), .device = 0, .dtype = RowDType::kBFloat16, .rows = kRows};
  mover_.attach(std::array{named(callers_)});
  move(from.block, {&result_, &to, to.dtype});
  mover_.finish();  // waits: what it has read goes
  EXPECT_EQ(result_.dtype, RowDType::kBFloat16);
  EXPECT_EQ(narrow[0], 0x3F80) << "1";
  EXPECT_EQ(narrow[kColumns], 0x4110) << "9, the first of the second row";
}

TEST_F(MovedBlocks, TakeAlongWhatTheyLieIn) {
  Matrix to(0);
  RowBytes bytes(kRows * kColumns * sizeof(float));
  std::ranges::fill(bytes, std::byte{0});
  std::vector<RowMove> moves;
  moves.emplace_back(ConstTensorView{bytes.data(), DType::kF32, {kRows, kColumns}},
                     RowTarget{&result_, &to.block}, RowMove::Source::kHost);
  moves.back().bytes = std::move(bytes);
  mover_.attach(std::array{named(callers_)});
  mover_.move(std::move(moves), &mover_.queue());
  mover_.finish();
  EXPECT_EQ(to.at(kRows - 1, kColumns - 1), 0);
}

TEST_F(MovedBlocks, AreOrderedWithSeveralStreams) {
  Matrix from(0);
  Matrix to(0);
  write_late(*callers_, from);
  bool has_passed = false;
  static_cast<test::DeferredStream&>(*others_).submit([&] { has_passed = to.at(0, 0) == -1; });
  mover_.attach(std::array{named(callers_), named(others_)});
  move(from.block, {&result_, &to.block});
  mover_.finish();
  const std::int64_t waits = device_.host_waits();
  others_->synchronize();
  EXPECT_EQ(device_.host_waits(), waits + 1);
  EXPECT_TRUE(has_passed) << "in front of the copy";
  EXPECT_EQ(to.at(0, 0), 7);
}

TEST_F(MovedBlocks, MayTakeTheQueueOfTheCallerItself) {
  Matrix from(0);
  Matrix to(0);
  write_late(*callers_, from);
  mover_.attach(std::array{named(callers_)});
  std::vector<RowMove> moves;
  moves.emplace_back(from.block, kColumns, RowTarget{&result_, &to.block});
  mover_.move(std::move(moves), &mover_.callers_queue());
  mover_.finish();
  EXPECT_EQ(to.at(0, 0), -1) << "nothing has run yet";
  callers_->synchronize();
  EXPECT_EQ(to.at(0, 0), 7);
}

TEST_F(MovedBlocks, AreThereInTheEndWithoutAStreamOfTheirOwn) {
  const Matrix from(0, 1);
  Matrix to(0);
  mover_.attach(std::array{CallerStream{}, named(callers_)});
  move(from.block, {&result_, &to.block});
  mover_.finish();
  EXPECT_EQ(to.at(0, 0), 1);
}

TEST_F(MovedBlocks, AreNotWrittenAfterTheyWereGivenUp) {
  const Matrix from(0, 1);
  Matrix to(0);
  mover_.attach(std::array{named(callers_)});
  move(from.block, {&result_, &to.block});
  mover_.abandon();
  to.values.fill(3);
  mover_.queue().synchronize();
  callers_->synchronize();
  EXPECT_EQ(to.at(0, 0), 3);
}

}  // namespace
}  // namespace fovea
