// Every GEMM kernel of ours, made to run by a file of choices that names it: odd sizes,
// tails in all directions, live rows, strided outputs and residuals in place, against double
// precision. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "core/check.h"
#include "fovea/tower/ops/linear.h"
#include "ops/cuda_gemm_cases.h"
#include "ops/cuda_gemm_fixture.h"
#include "ops/projected_attention_steps.h"
#include "support/op_fixture.h"

namespace fovea::test {
namespace {

using ops::Activation;

const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> all{{.name = "64x32"},
                                       {.name = "64x32 by 1x4"},
                                       {.name = "64x40"},
                                       {.name = "64x64"},
                                       {.name = "64x64 by 1x4"},
                                       {.name = "64x64 by 2x2"},
                                       {.name = "64x128 by 2x2"},
                                       {.name = "64x32 split", .splits = {2, 3, 8}},
                                       {.name = "64x32 by 1x2 split", .splits = {2, 3, 4}},
                                       {.name = "64x32 by 1x4 split", .splits = {2}},
                                       {.name = "64x64 split", .splits = {2, 3, 8}},
                                       {.name = "64x64 by 1x2 split", .splits = {2, 3, 4}},
                                       {.name = "64x72 split", .splits = {2, 3, 8}},
                                       {.name = "128x64 by 2x2"},
                                       {.name = "128x64 by 2x1"},
                                       {.name = "128x72 by 1x2"},
                                       {.name = "128x72 by 1x4"},
                                       {.name = "128x128 by 2x1"},
                                       {.name = "128x128 by 2x2"},
                                       {.name = "128x144 by 2x1"},
                                       {.name = "128x216 by 1x2"},
                                       {.name = "128x192 by 2x1"},
                                       {.name = "128x256 by 2x1"},
                                       {.name = "256x144 by 1x2"},
                                       {.name = "192x144 by 1x2"},
                                       {.name = "192x192 by 2x1"},
                                       {.name = "192x192 by 1x2"},
                                       {.name = "128x64 split", .splits = {2, 3, 8}},
                                       {.name = "128x64 by 2x1 split", .splits = {2, 3, 4}},
                                       {.name = "128x72 by 1x2 split", .splits = {2, 3, 4}},
                                       {.name = "128x128 by 2x1 split", .splits = {2, 3, 4}},
                                       {.name = "128x128 by 2x1 alternating"},
                                       {.name = "128x144 by 2x1 alternating"},
                                       {.name = "128x144 by 1x2 alternating"},
                                       {.name = "128x144 by 2x2 alternating"}};
  return all;
}

using Case = GemmCase;

/// Groups that take turns, and clusters of two rows and columns of tiles, add no residual.
bool accepts(const Kernel& kernel, const Case& c) {
  return !c.residual || (!kernel.name.ends_with("alternating") && !kernel.name.ends_with("2x2"));
}

/// The GEMM of the tests about recordings.
constexpr Case kRecorded{.rows = 300, .in_features = 512, .out_features = 136};

/// Operands of a plain GEMM with a bias on the device, and a poisoned result.
struct Placed {
  Placed(OpFixture& f, const Case& c, const Operands& o)
      : weight(ops::pack_linear(f.device(), view_of(o.weight, {c.out_features, c.in_features}),
                                view_of(o.bias, {c.out_features}))),
        in(f.activations({c.rows, c.in_features}, o.x)),
        out(f.poisoned({c.rows, c.out_features})) {}
  ops::PackedLinear weight;
  Tensor in;
  Tensor out;
};

TEST_F(CudaGemmTest, EveryKernelComputesEveryCase) {
  for (const Kernel& kernel : kernels()) {
    for (const int splits : kernel.splits) {
      SCOPED_TRACE(cat(kernel.name, " with ", splits, " splits"));
      std::string choices = header();
      for (const Case& c : cases())
        if (accepts(kernel, c)) choices += choice_line(c, kernel.name, splits);
      write_text(path(), choices);
      OpFixture f(case_with_choices(folder()));
      for (std::size_t i = 0; i < cases().size(); ++i)
        if (accepts(kernel, cases()[i])) check(f, cases()[i], operands_of(i), By::kOwnKernel);
      // Had a choice been refused, another would have been measured and kept.
      EXPECT_EQ(read_text(path()), choices);
    }
  }
}

TEST_F(CudaGemmTest, EveryKernelForHeadsBringsThemWhereAttentionReadsThem) {
  struct HeadKernel {
    const char* name;
    int head_dim;
    const char* plain;  ///< of the same tile, and so with the same sums
  };
  constexpr HeadKernel kKernels[] = {{"128x216 by 1x2, heads of 72", 72, "128x216 by 1x2"},
                                     {"192x144 by 1x2, heads of 72", 72, "192x144 by 1x2"},
                                     {"128x192 by 2x1, heads of 64", 64, "128x192 by 2x1"},
                                     {"128x256 by 2x1, heads of 64", 64, "128x256 by 2x1"}};
  const std::vector<std::int32_t> lengths{1, 24, 0, 145, 130, 361};  // last slabs full and not
  for (const HeadKernel& kernel : kKernels) {
    for (const std::int64_t num_heads : {1, 3, 16}) {
      for (const bool rotates : {true, false}) {
        SCOPED_TRACE(cat(kernel.name, ", ", num_heads, " heads, rotates ", rotates));
        const Heads heads{num_heads, kernel.head_dim};
        const Case gemm{.rows = offsets(lengths).back() + ProjectedAttention::kIdleRows,
                        .in_features = ProjectedAttention::kFeatures,
                        .out_features = 3 * heads.width()};
        const std::string choices = header() + choice_line(gemm, kernel.plain, 1) +
                                    choice_line(gemm, kernel.name, 1, kernel.head_dim);
        write_text(path(), choices);
        OpFixture f(case_with_choices(folder()));
        ProjectedAttention attention(f, heads, lengths, rotates);
        const std::vector<float> fused = attention.run();
        EXPECT_FALSE(std::ranges::any_of(fused, [](float v) { return std::isnan(v); }));
        expect_same_bits(fused, attention.run_step_by_step());
        EXPECT_EQ(read_text(path()), choices);
      }
    }
  }
}

TEST_F(CudaGemmTest, BlocksGoOnToFurtherTiles) {
  // More tiles than a GPU works on at once.
  constexpr Case kWithoutResidual{.rows = 4200,
                                  .in_features = 136,
                                  .out_features = 1304,
                                  .activation = Activation::kGeluTanh,
                                  .column = 8,
                                  .live = 4170};
  constexpr Case kResidual{
      .rows = 4200, .in_features = 136, .out_features = 1304, .residual = true, .live = 4170};
  for (const Case& c : {kWithoutResidual, kResidual}) {
    const Operands o = make_operands(c);
    for (const char* name : {"64x128 by 2x2", "64x64 by 1x4", "128x256 by 2x1", "192x144 by 1x2",
                             "192x192 by 1x2", "256x144 by 1x2", "128x144 by 2x2 alternating"}) {
      const Kernel kernel{.name = name};
      if (!accepts(kernel, c)) continue;
      SCOPED_TRACE(name);
      write_text(path(), header() + choice_line(c, name, 1));
      OpFixture f(case_with_choices(folder()));
      check(f, c, o, By::kOwnKernel);
    }
  }
}

TEST_F(CudaGemmTest, ARecordingServesEveryLiveCount) {
  const Case& c = kRecorded;
  const Operands o = make_operands(c);
  for (const Kernel& kernel : kernels()) {
    SCOPED_TRACE(kernel.name);
    write_text(path(), header() + choice_line(c, kernel.name, kernel.splits.front()));
    OpFixture f(case_with_choices(folder()));
    const Placed on_gpu(f, c, o);
    const Tensor count = f.ints({1}, {static_cast<std::int32_t>(c.rows)});
    const auto work = [&](ExecContext& ctx) {
      ops::linear(ctx, {.x = on_gpu.in.view(),
                        .weight = on_gpu.weight,
                        .rows = OpFixture::live(count),
                        .out = on_gpu.out.view()});
    };
    const std::vector<float> whole = f.run(on_gpu.out, work);
    const auto graph = f.capture(work);
    for (const std::int32_t live : {1, 64, 65, 300, 0, 129}) {
      SCOPED_TRACE(live);
      f.write(count, std::vector<std::int32_t>{live});
      f.poison(on_gpu.out);
      f.stream().replay(*graph);
      std::vector<float> want = whole;
      std::fill(want.begin() + live * c.out_features, want.end(), kPoison);
      expect_same_bits(f.read(on_gpu.out), want);
    }
  }
}

/// The rows of a case from one run of its GEMM, on a device of its own.
std::vector<float> compute(const OpCase& op_case, const Case& c, bool is_recorded) {
  OpFixture f(op_case);
  const Operands o = make_operands(c);
  const Placed on_gpu(f, c, o);
  ExecContext ctx = f.ctx();
  ctx.is_recorded = is_recorded;
  ops::linear(ctx, {.x = on_gpu.in.view(), .weight = on_gpu.weight, .out = on_gpu.out.view()});
  f.stream().synchronize();
  return f.read(on_gpu.out);
}

TEST_F(CudaGemmTest, EveryKernelGivesTheSameBitsOnFewerSms) {
  constexpr int kFewSms = 32;
  const TemporaryDirectory folder_of_few;
  const ChoicesFile few = first_choices(folder_of_few / "choices", kFewSms);
  // More tiles of most kernels than there are SMs.
  constexpr Case kManyTiles{.rows = 600, .in_features = 128, .out_features = 656};
  for (const Kernel& kernel : kernels()) {
    SCOPED_TRACE(kernel.name);
    const std::string line = choice_line(kManyTiles, kernel.name, kernel.splits.front());
    write_text(path(), header() + line);
    write_text(few.path, few.header + line);
    expect_same_bits(
        compute(case_with_choices(folder_of_few / "choices", kFewSms), kManyTiles, true),
        compute(case_with_choices(folder()), kManyTiles, true));
    EXPECT_EQ(read_text(few.path), few.header + line) << "another kernel was measured";
  }
}

TEST_F(CudaGemmTest, OnlyARehearsalMeasures) {
  const Case& c = kRecorded;
  const OpCase op_case = case_with_choices(folder());
  write_text(path(), header());
  (void)compute(op_case, c, false);
  EXPECT_EQ(read_text(path()), header()) << "nobody waits for a measurement of an eager run";
  (void)compute(op_case, c, true);
  const std::string kept = read_text(path());
  EXPECT_NE(kept.find(cat('\n', c.rows, ' ', c.in_features, ' ', c.out_features, ' ')),
            std::string::npos)
      << kept;
  (void)compute(op_case, c, true);
  EXPECT_EQ(read_text(path()), kept) << "once is enough";
}

TEST_F(CudaGemmTest, ASizeThatIsNotMeasuredTakesTheNearestChoice) {
  // Sums that two and eight CTAs share are added in another order.
  const std::string kernel = "64x32 split";
  Case near = kRecorded;
  near.rows = kRecorded.rows + 20;
  Case far = kRecorded;
  far.rows = 2 * kRecorded.rows;
  const OpCase op_case = case_with_choices(folder());
  const auto with_choices = [&](const std::string& lines) {
    write_text(path(), header() + lines);
    return compute(op_case, kRecorded, false);
  };
  const std::vector<float> two = with_choices(choice_line(kRecorded, kernel, 2));
  const std::vector<float> eight = with_choices(choice_line(kRecorded, kernel, 8));
  ASSERT_NE(two, eight);
  expect_same_bits(with_choices(choice_line(near, kernel, 2) + choice_line(far, kernel, 8)), two);
  expect_same_bits(with_choices(choice_line(near, kernel, 8) + choice_line(far, kernel, 2)), eight);
}

TEST_F(CudaGemmTest, ADamagedChoiceIsMeasuredAgain) {
  const Case& c = cases()[1];
  for (const char* kernel : {"no such kernel", "64x32 by 1x3", ""}) {
    const std::string choices = header() + choice_line(c, kernel, 1);
    write_text(path(), choices);
    OpFixture f(case_with_choices(folder()));
    check(f, c, operands_of(1));
    EXPECT_NE(read_text(path()), choices);
  }
}

TEST_F(CudaGemmTest, AChoiceThatCannotAddTheResidualIsMeasuredAgain) {
  const Case& c = cases()[kWithResidual];
  ASSERT_TRUE(c.residual);
  for (const char* kernel : {"128x144 by 2x1 alternating", "64x128 by 2x2"}) {
    const std::string choices = header() + choice_line(c, kernel, 1);
    write_text(path(), choices);
    OpFixture f(case_with_choices(folder()));
    check(f, c, operands_of(kWithResidual));
    EXPECT_NE(read_text(path()), choices);
  }
}

TEST_F(CudaGemmTest, TheNextDeviceMeasuresNothing) {
  const auto compute_all = [&] {
    OpFixture f(case_with_choices(folder()));
    for (std::size_t i = 0; i < cases().size(); ++i) check(f, cases()[i], operands_of(i));
  };
  compute_all();
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(path(), long_ago);
  compute_all();  // had it measured a GEMM, it would have kept the choice
  EXPECT_EQ(std::filesystem::last_write_time(path()), long_ago);
}

TEST_F(CudaGemmTest, AnAlgorithmThatTheLibraryRefusesIsMeasuredAgain) {
  const Case& c = cases()[2];
  const std::string line = choice_line(c, "", 1);
  const std::string choices = header() + line.substr(0, line.find("own")) +
                              "library ffff ffff ffff ffff ffff ffff ffff ffff\n";
  write_text(path(), choices);
  {
    OpFixture f(case_with_choices(folder()));
    check(f, c, operands_of(2));
  }
  EXPECT_NE(read_text(path()), choices);
}

}  // namespace
}  // namespace fovea::test
