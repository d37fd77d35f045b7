// Patches and class rows of square views.
#include "models/common/views/layers.h"

#include <gtest/gtest.h>

#include "device/cpu/cpu_device.h"
#include "models/common/weight_loader.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea::common {
namespace {

using Floats = std::vector<float>;

TensorView column(Floats& values) {
  return {reinterpret_cast<std::byte*>(values.data()), DType::kF32, {std::ssize(values), 1}};
}

/// Two views of two patches, rows of one column.
class ViewLayers : public ::testing::Test {
 protected:
  ViewBatch batch(const ViewSequence& sequence) {
    live_rows_ = static_cast<std::int32_t>(2 * sequence.rows());
    ViewBatch in;
    in.sequence = sequence;
    in.count = 2;
    in.views = {&live_views_};
    in.rows = {&live_rows_};
    return in;
  }

  Floats sequences(const ViewSequence& sequence, const Floats& class_rows,
                   const Floats& positions) {
    Floats x(static_cast<std::size_t>(2 * sequence.rows()));
    make_sequences(ctx_, batch(sequence), loader_.constant(class_rows, {std::ssize(class_rows), 1}),
                   loader_.constant(positions, {std::ssize(positions), 1}), column(patches_),
                   column(x));
    stream_->synchronize();
    return x;
  }

  Floats patches_{1, 2, 3, 4};
  std::int32_t live_views_ = 2;
  std::int32_t live_rows_ = 0;
  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::unique_ptr<Device> device_ = make_cpu_device(1, *kernels_);
  std::unique_ptr<Stream> stream_ = device_->create_stream();
  checkpoint::WeightSource source_ = checkpoint::WeightSource::dummy(0);
  WeightLoader loader_{source_, "", *device_, *stream_};
  Arena arena_{nullptr, 0};
  ExecContext ctx_{*stream_, *kernels_, arena_, *stream_};
};

TEST_F(ViewLayers, ClassRowsStandBeforeThePatchesOfEveryView) {
  EXPECT_EQ(
      sequences({.patches = 2, .class_rows = 2, .first_patch = 2}, {50, 60}, {100, 200, 300, 400}),
      (Floats{150, 260, 301, 402, 150, 260, 303, 404}));
}

TEST_F(ViewLayers, ClassRowsStandBehindThePatchesWhereTheseComeFirst) {
  EXPECT_EQ(sequences({.patches = 2, .first_patch = 0}, {50}, {100, 200, 300}),
            (Floats{101, 202, 350, 103, 204, 350}));
}

TEST_F(ViewLayers, TakingPatchesLeavesClassRowsOut) {
  Floats x{9, 1, 2, 9, 3, 4};
  Floats out(4);
  take_patches(ctx_, batch({.patches = 2}), column(x), column(out));
  stream_->synchronize();
  EXPECT_EQ(out, patches_);
}

TEST(AttendedRows, HaveOneSequencePerView) {
  ViewBatch in;
  in.sequence = {.patches = 16};
  const AttendedRows rows = attended_rows(in);
  EXPECT_EQ(rows.sequences.max_seqlen, 17);
  EXPECT_FALSE(rows.cos);
}

TEST(InPatchOrder, MovesPatchesAndLeavesTheClassRow) {
  // 4 x 4 patches in tokens of 2 x 2; a row of the table holds its number.
  const SquareView view{.side_px = 4, .patch_px = 1, .merge = 2};
  Floats table;
  for (int row = 0; row < 17; ++row) table.insert(table.end(), 2, static_cast<float>(row));
  const auto firsts = [](const Floats& rows) {
    Floats first;
    for (std::size_t i = 0; i < rows.size(); i += 2) first.push_back(rows[i]);
    return first;
  };
  EXPECT_EQ(firsts(in_patch_order(view, 1, 2, table)),
            (Floats{0, 1, 2, 5, 6, 3, 4, 7, 8, 9, 10, 13, 14, 11, 12, 15, 16}));
  EXPECT_EQ(firsts(in_patch_order(view, 0, 2, table)),
            (Floats{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15, 16}));
}

}  // namespace
}  // namespace fovea::common
