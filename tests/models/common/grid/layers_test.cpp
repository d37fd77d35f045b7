// What stands before the blocks of a tower over grids.
#include "models/common/grid/layers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "device/cpu/cpu_device.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea::common {
namespace {

TEST(RotatedRows, HaveTheAnglesOfTheirPositionsAndTheSequencesOfTheInputs) {
  const auto kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  const auto device = make_cpu_device(1, *kernels);
  const auto stream = device->create_stream();
  const auto weights = checkpoint::WeightSource::dummy(0);
  WeightLoader loader(weights, "", *device, *stream);
  const Tensor inv_freq = inverse_frequencies(loader, 8, 10000);  // 1 and 0.01
  const std::vector<std::int32_t> positions{1, 2, 4, 6};
  GridInputs in;
  in.positions = {reinterpret_cast<const std::byte*>(positions.data()), DType::kI32, {1, 4}};
  in.cu_seqlens = in.positions;
  const Buffer memory = device->allocate(1 << 16);
  Arena arena(memory.data(), memory.bytes());
  ExecContext ctx{*stream, *kernels, arena, *stream};
  const AttendedRows rows = rotated_rows(ctx, in, inv_freq, 1);
  stream->synchronize();
  const std::vector<double> angles{1, 0.01, 2, 0.02};
  for (std::size_t j = 0; j < angles.size(); ++j) {
    EXPECT_NEAR(rows.cos.as<float>()[j], std::cos(angles[j]), 1e-6) << j;
    EXPECT_NEAR(rows.sin.as<float>()[j], std::sin(angles[j]), 1e-6) << j;
  }
  EXPECT_EQ(rows.sequences.max_seqlen, 1);
  EXPECT_EQ(rows.sequences.cu_seqlens.data, in.cu_seqlens.data);
}

}  // namespace
}  // namespace fovea::common
