// Rows reach the memory of their embeddings unchanged, whatever device they come from, in pieces or
// not, with others on the way or not.
#include "engine/replicas/row_download.h"

#include <gtest/gtest.h>

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
    for (float& value : values) value = uniform(random);
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
    for (Embedding& result : results_) out_.push_back(&result);
  }

  [[nodiscard]] std::span<const TensorView> views() const { return views_; }
  [[nodiscard]] std::span<const RowSink> out() const { return out_; }
  [[nodiscard]] const std::vector<Embedding>& results() const { return results_; }

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
  std::vector<RowSink> out_;
};

class RowDownloadTest : public ::testing::TestWithParam<bool> {
 protected:
  RowDownloadTest() {
    if (GetParam()) {
      device_ = std::make_unique<test::DeferredDevice>(*kernels_, test::Schedule::kLast);
    } else {
      device_ = make_cpu_device(1, *kernels_);
    }
  }

  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::unique_ptr<Device> device_;
};

TEST_P(RowDownloadTest, ConvertsEveryPairOfTypes) {
  RowDownload download(*device_);
  for (const DType from : {DType::kF32, DType::kBF16}) {
    for (const RowDType to : {RowDType::kFloat32, RowDType::kBFloat16, RowDType::kFloat16}) {
      Rows rows(*device_, from, {3, 200, 1}, 1);
      download.begin(rows.views(), to, rows.out());
      download.finish();
      rows.expect_arrived(to);
    }
  }
}

TEST(RowDownload, TakesAQueueWithoutScratchForOps) {
  const auto kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  test::DeferredDevice device(*kernels, test::Schedule::kLast);
  const RowDownload download(device);
  EXPECT_EQ(device.num_op_streams(), 0);
}

TEST_P(RowDownloadTest, TakesMoreThanItsBuffersHold) {
  RowDownload download(*device_);
  Rows rows(*device_, DType::kF32, {1, kManyRows, 40}, 2);
  download.begin(rows.views(), RowDType::kFloat32, rows.out());
  download.finish();
  rows.expect_arrived(RowDType::kFloat32);
}

TEST_P(RowDownloadTest, ItemsWithoutRowsAndNoItemsAreFine) {
  RowDownload download(*device_);
  Rows none(*device_, DType::kF32, {}, 3);
  download.begin(none.views(), RowDType::kFloat32, none.out());
  Rows rows(*device_, DType::kF32, {0, 5, 0}, 3);
  download.begin(rows.views(), RowDType::kFloat32, rows.out());
  download.finish();
  rows.expect_arrived(RowDType::kFloat32);
  Rows empty(*device_, DType::kF32, {0}, 3);
  download.begin(empty.views(), RowDType::kBFloat16, empty.out());
  download.finish();
  empty.expect_arrived(RowDType::kBFloat16);
}

TEST_P(RowDownloadTest, RowsBegunBeforeAreThereWhenTheNextBegin) {
  RowDownload download(*device_);
  Rows first(*device_, DType::kBF16, {kManyRows}, 4);
  Rows second(*device_, DType::kBF16, {70, 30}, 5);
  download.begin(first.views(), RowDType::kFloat32, first.out());
  download.begin(second.views(), RowDType::kFloat32, second.out());
  first.expect_arrived(RowDType::kFloat32);
  download.finish();
  second.expect_arrived(RowDType::kFloat32);
  download.finish();  // nothing is left to wait for
}

TEST_P(RowDownloadTest, RowsThatNoMemoryHoldsAreAnError) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the operator new of the thread sanitizer ends the program instead of throwing";
#endif
  RowDownload download(*device_);
  Rows rows(*device_, DType::kF32, {1}, 7);
  TensorView huge = rows.views().front();
  huge.shape = {std::int64_t{1} << 45, 1};
  test::expect_error(ErrorCode::kOutOfMemory, "no memory for the 140737488355328 bytes", [&] {
    download.begin({&huge, 1}, RowDType::kFloat32, rows.out());
    download.finish();
  });
  download.begin(rows.views(), RowDType::kFloat32, rows.out());
  download.finish();
  rows.expect_arrived(RowDType::kFloat32);
}

TEST_P(RowDownloadTest, SomeGoToBlocksOfTheCaller) {
  RowDownload download(*device_);
  Rows rows(*device_, DType::kBF16, {3, kManyRows, 2}, 8);
  const test::HostRoom room(kManyRows + 1, kWidth, RowDType::kFloat16, 6);
  std::vector<RowSink> sinks(rows.out().begin(), rows.out().end());
  sinks[1] = {sinks[1].result, &room.block(), RowDType::kFloat16};
  download.begin(rows.views(), RowDType::kFloat16, sinks);
  download.finish();
  EXPECT_TRUE(rows.results()[1].data.empty());
  Rows same(*device_, DType::kBF16, {3, kManyRows, 2}, 8);
  download.begin(same.views(), RowDType::kFloat16, same.out());
  download.finish();
  same.expect_arrived(RowDType::kFloat16);
  room.expect_rows(same.results()[1]);
  EXPECT_EQ(rows.results()[2].data, same.results()[2].data);
}

TEST_P(RowDownloadTest, TimeIsSharedByRows) {
  RowDownload download(*device_);
  Rows rows(*device_, DType::kF32, {10, 0, 30}, 6);
  download.begin(rows.views(), RowDType::kFloat32, rows.out());
  download.finish();
  EXPECT_GT(rows.results()[0].times.output_ms, 0);
  EXPECT_EQ(rows.results()[1].times.output_ms, 0);
  EXPECT_DOUBLE_EQ(rows.results()[2].times.output_ms, 3 * rows.results()[0].times.output_ms);
}

INSTANTIATE_TEST_SUITE_P(Devices, RowDownloadTest, ::testing::Bool(),
                         [](const auto& device) { return device.param ? "deferred" : "cpu"; });

}  // namespace
}  // namespace fovea
