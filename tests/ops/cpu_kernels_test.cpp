// What is particular to the CPU backend: instruction sets, threads, and what a replay refuses.
#include "ops/cpu/cpu_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "core/check.h"
#include "device/cpu/cpu_device.h"
#include "ops/cpu/isa/isa_kernels.h"
#include "support/expect_error.h"
#include "support/op_fixture.h"

namespace fovea::test {
namespace {

TEST(CpuKernels, NamesInstructionSets) {
  EXPECT_STREQ(to_string(CpuIsa::kPortable), "portable");
  EXPECT_STREQ(to_string(CpuIsa::kAvx2), "avx2");
  EXPECT_STREQ(to_string(CpuIsa::kAvx512), "avx512");
  EXPECT_STREQ(to_string(CpuIsa::kNeon), "neon");
}

TEST(CpuKernels, AreDescribedByTheUnitsThatMultiply) {
  const cpu::IsaKernels used = cpu::choose_kernels(cpu::cpu_features());
  EXPECT_EQ(describe_cpu_kernels(), cat(to_string(detect_cpu_isa()), ": float32 ", used.f32.name,
                                        ", bfloat16 ", used.bf16.name, ", int8 ", used.int8.name));
}

TEST(CpuKernels, WorkWithEveryInstructionSetUpToTheDetectedOne) {
  for (const CpuIsa isa : cpu_isas()) EXPECT_NE(make_cpu_kernels(isa), nullptr);
}

TEST(CpuKernels, RefuseAnInstructionSetThatTheMachineLacks) {
  int refused = 0;
  for (const CpuIsa isa : {CpuIsa::kAvx2, CpuIsa::kAvx512, CpuIsa::kNeon}) {
    if (std::ranges::count(cpu_isas(), isa) > 0) continue;
    ++refused;
    expect_error(ErrorCode::kUnsupported, cat(to_string(isa), " was asked for"),
                 [&] { (void)make_cpu_kernels(isa); });
  }
  EXPECT_GT(refused, 0);  // no machine is of two architectures
}

TEST(CpuKernels, RefuseANegativeNumberOfThreads) {
  expect_error(ErrorCode::kInvalidArgument, "number of threads must be >= 0, got -1",
               [] { (void)make_cpu_kernels(CpuIsa::kPortable, -1); });
}

TEST(CpuKernels, RefuseToMultiplyInAnythingButFloat32AndBFloat16) {
  EXPECT_NE(make_cpu_kernels(CpuIsa::kPortable, 1, DType::kBF16), nullptr);
  expect_error(ErrorCode::kInvalidArgument, "multiply float32 or bfloat16, not float16",
               [] { (void)make_cpu_kernels(CpuIsa::kPortable, 1, DType::kF16); });
}

/// One head of attention over 100 rows with what an op needs around it.
struct SmallAttention {
  static constexpr std::int64_t kRows = 100;
  static constexpr std::int64_t kDim = 16;

  /// Kernels that know of `scratch_threads`, a device that has `device_threads`.
  SmallAttention(CpuIsa isa, int scratch_threads, int device_threads)
      : kernels(make_cpu_kernels(isa, scratch_threads)),
        device(make_cpu_device(device_threads, *kernels)),
        stream(device->create_stream()),
        memory(device->allocate(std::size_t{8} << 20)),
        arena(memory.data(), memory.bytes()),
        out(make_tensor(*device, DType::kF32, {kRows, kDim})) {
    std::mt19937_64 generator(1);
    values = normal_values(generator, kRows * 3 * kDim);
    const std::vector<std::int32_t> offsets{0, 100};
    const auto bytes = [](const auto& from) {
      return reinterpret_cast<const std::byte*>(from.data());
    };
    qkv = upload(*device, *stream, {bytes(values), DType::kF32, {kRows, 3 * kDim}});
    cu = upload(*device, *stream, {bytes(offsets), DType::kI32, {2}});
  }
  std::vector<float> run() {
    ExecContext ctx{*stream, *kernels, arena, *stream};
    ops::attention(ctx, {.qkv = qkv.view(),
                         .sequences = {.cu_seqlens = cu.view(), .max_seqlen = kRows},
                         .num_heads = 1,
                         .head_dim = kDim,
                         .scale = 0.25f,
                         .out = out.view()});
    const auto* const first = out.view().as<float>();
    return {first, first + out.shape.elements()};
  }

  std::unique_ptr<Kernels> kernels;
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  Buffer memory;
  Arena arena;
  Tensor out;
  std::vector<float> values;
  Tensor qkv;
  Tensor cu;
};

TEST(CpuKernels, AttentionRunsOnADeviceWithMoreThreadsThanItHasScratchFor) {
  SmallAttention enough(detect_cpu_isa(), 4, 4);
  SmallAttention scarce(detect_cpu_isa(), 1, 4);
  SmallAttention plenty(detect_cpu_isa(), 9, 2);
  const std::vector<float> want = enough.run();
  expect_same_bits(scarce.run(), want);
  expect_same_bits(plenty.run(), want);
}

TEST(CpuKernels, AttentionAsksForScratchPerThread) {
  const auto one = make_cpu_kernels(CpuIsa::kPortable, 1);
  const auto seven = make_cpu_kernels(CpuIsa::kPortable, 7);
  const ops::AttentionArgs args{.qkv = {},
                                .sequences = {.cu_seqlens = {}, .max_seqlen = 1},
                                .num_heads = 16,
                                .head_dim = 72,
                                .scale = 1,
                                .out = {}};
  EXPECT_GT(one->attention_workspace(args), 0u);
  EXPECT_EQ(seven->attention_workspace(args), 7 * one->attention_workspace(args));
}

/// Every op that has live rows, on two rows, with a count that the capacity does not allow.
TEST(CpuKernels, RefuseLiveCountsBeyondTheCapacity) {
  OpFixture f(op_cases().front());  // a CPU
  const Tensor x = f.activations({2, 24}, std::vector<float>(48, 0.0f));
  const Tensor y = f.activations({2, 24}, std::vector<float>(48, 0.0f));
  const Tensor heads = f.activations({2, 8}, std::vector<float>(16, 0.0f));
  const Tensor half = f.activations({2, 12}, std::vector<float>(24, 0.0f));
  const Tensor columns = f.floats({24}, std::vector<float>(24, 0.0f));
  const Tensor angles = f.floats({2, 4}, std::vector<float>(8, 0.0f));
  const Tensor positions = f.ints({2, 4}, {0, 0, 1, 1, 0, 0, 1, 1});
  const Tensor index = f.ints({2}, {0, 1});
  const Tensor bytes = f.bytes(std::vector<std::uint8_t>(24, 0));
  const Tensor bytes_table = f.floats({3, 256}, std::vector<float>(768, 0.0f));
  const Tensor place_table = f.floats({1, 24}, std::vector<float>(24, 0.0f));
  const Tensor frequencies = f.floats({4}, {1, 1, 1, 1});
  const std::vector<float> weight(24 * 24, 0.0f);
  const ops::PackedLinear projection = ops::pack_linear(f.device(), view_of(weight, {24, 24}), {});
  const auto one_head = [&](LiveRows seqs, LiveRows rows) {
    return ops::AttentionArgs{
        .qkv = x.view(),
        .sequences = {.cu_seqlens = index.view(), .seqs = seqs, .max_seqlen = 2, .rows = rows},
        .num_heads = 1,
        .head_dim = 8,
        .scale = 1,
        .out = heads.view()};
  };
  for (const std::int32_t wrong : {3, -1}) {
    const Tensor count = f.ints({1}, {wrong});
    const LiveRows rows = OpFixture::live(count);
    const std::vector<std::function<void(ExecContext&)>> all{
        [&](ExecContext& ctx) {
          ops::layer_norm(ctx, {x.view(), columns.view(), columns.view(), 1, rows, y.view()});
        },
        [&](ExecContext& ctx) {
          ops::rms_norm(ctx, {x.view(), columns.view(), 1, rows, y.view()});
        },
        [&](ExecContext& ctx) {
          ops::activate(ctx, {.activation = ops::Activation::kSilu, .rows = rows, .x = y.view()});
        },
        [&](ExecContext& ctx) {
          ops::gated(ctx, {.x = x.view(), .rows = rows, .out = half.view()});
        },
        [&](ExecContext& ctx) {
          ops::clamp(ctx, {x.view(), columns.view(), columns.view(), rows, y.view()});
        },
        [&](ExecContext& ctx) {
          ops::rope_angles(
              ctx, {positions.view(), frequencies.view(), rows, angles.view(), angles.view()});
        },
        [&](ExecContext& ctx) {
          ops::projected_attention(ctx, {.x = y.view(),
                                         .projection = projection,
                                         .qkv = x.view(),
                                         .sequences = one_head({}, rows).sequences,
                                         .num_heads = 1,
                                         .head_dim = 8,
                                         .scale = 1,
                                         .out = heads.view()});
        },
        [&](ExecContext& ctx) { ops::attention(ctx, one_head(rows, {})); },
        [&](ExecContext& ctx) { ops::attention(ctx, one_head({}, rows)); },
        [&](ExecContext& ctx) {
          ops::patchify(ctx,
                        {bytes.view(), positions.view(), bytes_table.view(), 2, 2, rows, y.view()});
        },
        [&](ExecContext& ctx) {
          ops::add_positions_bilinear(ctx,
                                      {place_table.view(), positions.view(), 1, 1, rows, y.view()});
        },
        [&](ExecContext& ctx) {
          ops::add_positions_half_pixel(
              ctx, {place_table.view(), positions.view(), 1, 1, rows, y.view()});
        },
        [&](ExecContext& ctx) {
          ops::add_positions_bicubic(ctx,
                                     {place_table.view(), positions.view(), 1, 1, rows, y.view()});
        },
        [&](ExecContext& ctx) {
          ops::add_positions_antialiased(
              ctx, {place_table.view(), positions.view(), 1, 1, rows, y.view()});
        },
        [&](ExecContext& ctx) {
          ops::gather_rows(ctx, {x.view(), index.view(), rows, y.view()});
        }};
    for (std::size_t op = 0; op < all.size(); ++op) {
      SCOPED_TRACE(op);
      ExecContext ctx = f.ctx();
      expect_error(ErrorCode::kInternal, cat("live count is ", wrong, ", capacity "),
                   [&] { all[op](ctx); });
    }
  }
}

}  // namespace
}  // namespace fovea::test
