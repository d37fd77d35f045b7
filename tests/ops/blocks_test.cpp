// Blocks of a tower in one piece of work, where a backend has that, against the ops one by one.
#include "fovea/tower/ops/blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "core/check.h"
#include "fovea/tower/ops/linear.h"
#include "fovea/tower/ops/norm.h"
#include "fovea/tower/ops/projected_attention.h"
#include "support/expect_error.h"
#include "support/op_fixture.h"

namespace fovea::test {
namespace {

struct Sizes {
  std::int64_t width;
  std::int64_t heads;
  std::int64_t mlp;
  [[nodiscard]] std::int64_t head_dim() const { return width / heads; }
  /// Features out and in of qkv, proj, fc1, fc2.
  [[nodiscard]] std::vector<std::pair<std::int64_t, std::int64_t>> layers() const {
    return {{3 * width, width}, {width, width}, {mlp, width}, {width, mlp}};
  }
};

constexpr Sizes kLarge{1152, 16, 4304};
constexpr Sizes kSmall{1024, 16, 4096};

/// Sequences of these lengths in a tensor of `capacity` rows.
struct Rows {
  std::vector<std::int32_t> lengths;
  std::int64_t capacity;
  [[nodiscard]] std::int64_t live() const {
    std::int64_t sum = 0;
    for (const std::int32_t length : lengths) sum += length;
    return sum;
  }
};

/// What all towers are made of, as host values.
struct Values {
  Sizes sizes;
  std::vector<std::vector<float>> weights;  // of qkv, proj, fc1, fc2
  std::vector<std::vector<float>> biases;
  std::vector<std::vector<float>> norms;  // weight, bias, weight, bias
  std::vector<float> angles;              // of 256 rows
};

Values random_values(const Sizes& sizes, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  const std::int64_t width = sizes.width;
  const auto scaled = [&](std::int64_t count, float offset, float scale) {
    std::vector<float> values = normal_values(generator, count);
    for (float& value : values) value = offset + scale * value;
    return values;
  };
  Values v{.sizes = sizes, .weights = {}, .biases = {}, .norms = {}, .angles = {}};
  for (const auto& [out, in] : sizes.layers()) {
    v.weights.push_back(scaled(out * in, 0, 1.0f / std::sqrt(static_cast<float>(in))));
    v.biases.push_back(scaled(out, 0, 0.1f));
  }
  for (int i = 0; i < 2; ++i) {
    v.norms.push_back(scaled(width, 1, 0.3f));
    v.norms.push_back(scaled(width, 0, 0.2f));
  }
  v.angles = scaled(256 * sizes.head_dim() / 2, 0, 2);
  return v;
}

/// Blocks on a device, all with the same weights, and rows for them.
class Tower {
 public:
  Tower(OpFixture& f, const Values& v, const Rows& rows, std::vector<float> x)
      : f_(f), sizes_(v.sizes), rows_(rows), x_values_(std::move(x)) {
    const auto layers = sizes_.layers();
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const auto [out, in] = layers[i];
      layers_.push_back(ops::pack_linear(f.device(), view_of(v.weights[i], {out, in}),
                                         view_of(v.biases[i], {out})));
    }
    for (const auto& norm : v.norms) norms_.push_back(f.floats({sizes_.width}, norm));
    const std::int64_t pairs = sizes_.head_dim() / 2;
    std::vector<float> cos(v.angles.begin(), v.angles.begin() + rows.capacity * pairs);
    std::vector<float> sin = cos;
    for (float& angle : cos) angle = std::cos(angle);
    for (float& angle : sin) angle = std::sin(angle);
    cos_ = f.floats({rows.capacity, pairs}, cos);
    sin_ = f.floats({rows.capacity, pairs}, sin);
    std::vector<std::int32_t> cu{0};
    for (const std::int32_t length : rows.lengths) cu.push_back(cu.back() + length);
    seqs_ = f.ints({1}, {static_cast<std::int32_t>(rows.lengths.size())});
    live_ = f.ints({1}, {static_cast<std::int32_t>(rows.live())});
    cu.resize(cu.size() + 2, -7);
    cu_ = f.ints({static_cast<std::int64_t>(cu.size())}, cu);
    x_values_.resize(static_cast<std::size_t>(rows.capacity * sizes_.width),
                     std::numeric_limits<float>::quiet_NaN());
    x_ = f.activations({rows.capacity, sizes_.width}, x_values_);
  }

  [[nodiscard]] ops::BlockLayers layers() const {
    return {.norm1_weight = norms_[0].view(),
            .norm1_bias = norms_[1].view(),
            .norm2_weight = norms_[2].view(),
            .norm2_bias = norms_[3].view(),
            .epsilon = 1e-6f,
            .qkv = layers_[0],
            .proj = layers_[1],
            .fc1 = layers_[2],
            .fc2 = layers_[3],
            .activation = ops::Activation::kGeluTanh,
            .num_heads = sizes_.heads};
  }
  [[nodiscard]] ops::PreparedBlocks prepare(int blocks) const {
    const std::vector<ops::BlockLayers> all(static_cast<std::size_t>(blocks), layers());
    return ops::prepare_blocks(f_.device(), all);
  }
  [[nodiscard]] ops::AddBlocksArgs args(const ops::PreparedBlocks& prepared) const {
    return {.blocks = prepared,
            .cos = cos_.view(),
            .sin = sin_.view(),
            .sequences = sequences(),
            .x = x_.view()};
  }
  [[nodiscard]] TensorView x() const { return x_.view(); }
  [[nodiscard]] const std::vector<float>& x_values() const { return x_values_; }
  [[nodiscard]] std::vector<float> read_x() const { return f_.read(x_); }

  /// The live rows behind all blocks, computed in one piece of work, eagerly and recorded.
  /// @param copies what is kept at each of `taps` goes to.
  std::vector<float> run_together(const ops::PreparedBlocks& prepared,
                                  std::span<const std::int64_t> taps = {},
                                  std::span<const TensorView> copies = {}) {
    return live_rows(f_.run_in_place(x_, x_values_, [&](ExecContext& ctx) {
      const Arena::Scope scope(ctx.arena);
      ops::AddBlocksArgs all = args(prepared);
      all.taps = taps;
      const auto kept = ops::add_blocks(ctx, all);
      ASSERT_TRUE(kept);
      ASSERT_EQ(kept->size(), copies.size());
      for (std::size_t i = 0; i < copies.size(); ++i)
        ctx.stream.copy(copies[i].data, (*kept)[i].data, copies[i].bytes());
    }));
  }
  std::vector<float> run_by_ops(int blocks) {
    const Shape shape = x_.shape;
    const Tensor normed = f_.poisoned(shape);
    const Tensor mixed = f_.poisoned(shape);
    const Tensor qkv = f_.poisoned({shape[0], 3 * sizes_.width});
    const Tensor wide = f_.poisoned({shape[0], sizes_.mlp});
    const ops::Sequences seqs = sequences();
    const auto norm = [&](ExecContext& ctx, std::size_t number) {
      ops::layer_norm(ctx, {.x = x_.view(),
                            .weight = norms_[2 * number].view(),
                            .bias = norms_[2 * number + 1].view(),
                            .epsilon = 1e-6f,
                            .rows = seqs.rows,
                            .out = normed.view()});
    };
    return live_rows(f_.run_in_place(x_, x_values_, [&](ExecContext& ctx) {
      for (int i = 0; i < blocks; ++i) {
        norm(ctx, 0);
        ops::projected_attention(ctx,
                                 {.x = normed.view(),
                                  .projection = layers_[0],
                                  .qkv = qkv.view(),
                                  .cos = cos_.view(),
                                  .sin = sin_.view(),
                                  .sequences = seqs,
                                  .num_heads = sizes_.heads,
                                  .head_dim = sizes_.head_dim(),
                                  .scale = 1.0f / std::sqrt(static_cast<float>(sizes_.head_dim())),
                                  .out = mixed.view()});
        ops::linear(ctx, {.x = mixed.view(),
                          .weight = layers_[1],
                          .residual = x_.view(),
                          .rows = seqs.rows,
                          .out = x_.view()});
        norm(ctx, 1);
        ops::mlp(ctx, {.x = normed.view(),
                       .fc1 = layers_[2],
                       .fc2 = layers_[3],
                       .activation = ops::Activation::kGeluTanh,
                       .residual = x_.view(),
                       .rows = seqs.rows,
                       .wide = wide.view(),
                       .out = x_.view()});
      }
    }));
  }

 private:
  [[nodiscard]] ops::Sequences sequences() const {
    return {.cu_seqlens = cu_.view(),
            .seqs = OpFixture::live(seqs_),
            .max_seqlen = rows_.capacity,
            .rows = OpFixture::live(live_)};
  }
  [[nodiscard]] std::vector<float> live_rows(std::vector<float> all) const {
    all.resize(static_cast<std::size_t>(rows_.live() * sizes_.width));
    return all;
  }

  OpFixture& f_;
  Sizes sizes_;
  Rows rows_;
  std::vector<float> x_values_;
  std::vector<ops::PackedLinear> layers_;
  std::vector<Tensor> norms_;
  Tensor cos_, sin_, cu_, seqs_, live_, x_;
};

/// Euclidean norm of the difference, relative to that of `want`.
double difference(const std::vector<float>& got, const std::vector<float>& want) {
  double off = 0;
  double all = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double d = double{got[i]} - want[i];
    off += d * d;
    all += double{want[i]} * want[i];
  }
  return std::sqrt(off / all);
}

class BlocksTest : public ::testing::TestWithParam<OpCase> {
 protected:
  void SetUp() override {
    if (f.exact_rows()) GTEST_SKIP() << "the CPU computes blocks op by op";
    if (!has_gpu_with(CudaAttention::kHopper)) GTEST_SKIP() << "needs Hopper's kernels";
    if (has_few_sms()) GTEST_SKIP() << "too few SMs for all CTAs at once";
  }

  [[nodiscard]] bool has_few_sms() {
    constexpr int kMostCtas = 120;
    return f.device().properties().parallelism < kMostCtas;
  }

  /// One piece of work is at most `most` times as far from float32 as the ops one by one.
  void expect_as_close(const Sizes& sizes, const Rows& rows, int blocks, double most,
                       const std::function<void(std::vector<float>&)>& change = {}) {
    SCOPED_TRACE(::testing::Message()
                 << "width " << sizes.width << ", lengths "
                 << ::testing::PrintToString(rows.lengths) << ", " << blocks << " blocks");
    Values v = random_values(sizes, static_cast<std::uint64_t>(sizes.width + rows.live()));
    for (auto* values : {&v.weights, &v.biases})
      for (auto& tensor : *values) tensor = f.rounded(std::move(tensor));
    std::mt19937_64 generator(7);
    std::vector<float> x = normal_values(generator, rows.live() * sizes.width);
    if (change) change(x);
    x = f.rounded(std::move(x));
    Tower tower(f, v, rows, x);
    const auto prepared = tower.prepare(blocks);
    ASSERT_TRUE(prepared);

    OpFixture cpu({available_devices().front(), DType::kF32});
    Tower reference(cpu, v, {rows.lengths, rows.live()}, x);
    const std::vector<float> want = reference.run_by_ops(blocks);
    const std::vector<float> together = tower.run_together(prepared);
    ASSERT_TRUE(std::ranges::all_of(together, [](float value) { return std::isfinite(value); }));
    EXPECT_LE(difference(together, want), most * difference(tower.run_by_ops(blocks), want));
    for (int i = 0; i < 10; ++i) expect_same_bits(tower.run_together(prepared), together);
  }

  OpFixture f{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Devices, BlocksTest, ::testing::ValuesIn(op_cases()), op_case_name);

/// In the first 8 of 16 rows every other operand of a GEMM has one bit less, so that the mean
/// square of its rounding errors is 2.5 times as large.
const double kOneBlock = std::sqrt(2.5);
/// From then on it counts that x is not rounded between blocks.
constexpr double kSeveralBlocks = 1.1;

TEST_P(BlocksTest, AreAsCloseToFloat32AsOpByOp) {
  for (const Sizes& sizes : {kLarge, kSmall}) {
    expect_as_close(sizes, {{64}, 64}, 2, kSeveralBlocks);
    expect_as_close(sizes, {{1}, 4}, 1, kOneBlock);
    expect_as_close(sizes, {{20, 0, 13, 7}, 52}, 3, kSeveralBlocks);
    expect_as_close(sizes, {std::vector<std::int32_t>(16, 4), 64}, 1, kOneBlock);
    expect_as_close(sizes, {{256}, 256}, 2, kSeveralBlocks);
    expect_as_close(sizes, {{5}, 65}, 1, kOneBlock);
    expect_as_close(sizes, {{64, 0, 77, 3, 100}, 250}, 3, kSeveralBlocks);
    expect_as_close(sizes, {std::vector<std::int32_t>(64, 4), 256}, 1, kOneBlock);
  }
}

TEST_P(BlocksTest, KeepTheirAccuracyBesideLargeComponents) {
  // One component of every row far above the others, as in trained towers, and a mean far from 0.
  const Rows rows{{33}, 33};
  expect_as_close(kLarge, rows, 2, kSeveralBlocks, [](std::vector<float>& x) {
    for (std::size_t i = 77; i < x.size(); i += static_cast<std::size_t>(kLarge.width)) x[i] = 3000;
  });
  expect_as_close(kLarge, rows, 2, kSeveralBlocks, [](std::vector<float>& x) {
    for (float& value : x) value += 100;
  });
}

TEST_P(BlocksTest, AreCloserToFloat32WhereThereAreMany) {
  constexpr double kManyBlocks = 0.5;
  expect_as_close(kLarge, {{16}, 16}, 27, kManyBlocks);
  expect_as_close(kSmall, {{9}, 16}, 35, kManyBlocks);  // more than one kernel holds
  expect_as_close(kLarge, {{250}, 256}, 27, kManyBlocks);
}

TEST_P(BlocksTest, StoreXOnItsWay) {
  const Values v = random_values(kSmall, 3);
  std::mt19937_64 generator(4);
  for (const Rows& rows : {Rows{{30, 10}, 48}, Rows{{130, 40}, 200}}) {
    SCOPED_TRACE(rows.capacity);
    Tower tower(f, v, rows, normal_values(generator, rows.live() * kSmall.width));
    const Tensor first = f.poisoned({rows.capacity, kSmall.width});
    const Tensor last = f.poisoned({rows.capacity, kSmall.width});
    const std::int64_t taps[] = {0, 2};
    const TensorView copies[] = {first.view(), last.view()};
    const std::vector<float> x = tower.run_together(tower.prepare(3), taps, copies);
    const auto live = [&](const Tensor& tap) {
      std::vector<float> values = f.read(tap);
      values.resize(x.size());
      return values;
    };
    expect_same_bits(live(last), x);
    expect_same_bits(live(first), tower.run_together(tower.prepare(1)));
  }
}

TEST_P(BlocksTest, PassRowsOnTwoStreamsAtOnce) {
  // If both kernels were half at work, each would wait for its other half for ever.
  const Values v = random_values(kSmall, 11);
  std::mt19937_64 generator(12);
  const std::unique_ptr<Stream> other_stream = f.device().create_stream();
  const Buffer memory = f.device().allocate(1 << 20);
  Arena arena(memory.data(), memory.bytes());
  ExecContext here = f.ctx();
  ExecContext there{*other_stream, f.device().kernels(), arena, *other_stream};
  for (const std::int32_t count : {64, 256}) {
    SCOPED_TRACE(count);
    Tower tower(f, v, {{count}, count}, normal_values(generator, count * kSmall.width));
    const ops::PreparedBlocks prepared = tower.prepare(24);
    const std::vector<float> want = tower.run_together(prepared);
    const Tensor start = f.activations({count, kSmall.width}, tower.x_values());
    const Tensor other_x = f.poisoned({count, kSmall.width});
    ops::AddBlocksArgs other = tower.args(prepared);
    other.x = other_x.view();
    for (int round = 0; round < 200; ++round) {
      for (const auto& [ctx, args] :
           {std::pair{&here, tower.args(prepared)}, std::pair{&there, other}}) {
        ctx->stream.copy(args.x.data, start.view().data, start.view().bytes());
        ASSERT_TRUE(ops::add_blocks(*ctx, args));
      }
    }
    other_stream->synchronize();
    f.stream().synchronize();
    expect_same_bits(f.read(other_x), want);
    expect_same_bits(tower.read_x(), want);
  }
}

TEST_P(BlocksTest, AreComputedOpByOpWhereThereAreManyRowsOrOtherSizes) {
  const Values v = random_values(kSmall, 5);
  const auto x = std::vector<float>(static_cast<std::size_t>(64 * kSmall.width), 1.0f);
  Tower tower(f, v, {{64}, 64}, x);
  const auto prepared = tower.prepare(2);
  ASSERT_TRUE(prepared);
  ExecContext ctx = f.ctx();
  ops::AddBlocksArgs many = tower.args(prepared);
  const Tensor wide = f.poisoned({257, kSmall.width});
  many.x = wide.view();
  many.cos = many.sin = {};
  EXPECT_FALSE(ops::add_blocks(ctx, many));

  const Values other = random_values({1152, 16, 4096}, 5);
  const Tower without(f, other, {{4}, 4}, std::vector<float>(4 * 1152, 1.0f));
  EXPECT_FALSE(without.prepare(2));
}

TEST_P(BlocksTest, NameWhatIsWrongWithTheirArguments) {
  const Values v = random_values(kSmall, 5);
  Tower tower(f, v, {{4}, 4}, std::vector<float>(static_cast<std::size_t>(4 * kSmall.width), 1.0f));
  const auto prepared = tower.prepare(2);
  ASSERT_TRUE(prepared);
  const ops::AddBlocksArgs good = tower.args(prepared);
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::AddBlocksArgs args = good;
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { (void)ops::add_blocks(ctx, args); });
  };
  const std::int64_t behind_the_last = 2;
  expect("add_blocks: there is no block 2 of 2", [&](auto& a) { a.taps = {&behind_the_last, 1}; });
  expect("blocks of width 1024", [](auto& a) { a.x.shape = {4, 512}; });
  expect("add_blocks: sin must be", [](auto& a) { a.sin = {}; });
  expect("add_blocks: max_seqlen must be in [0, 4], got 5",
         [](auto& a) { a.sequences.max_seqlen = 5; });
  expect("add_blocks: cu_seqlens must be int32",
         [](auto& a) { a.sequences.cu_seqlens.shape = {}; });
  expect("must begin at a multiple of 16 bytes", [](auto& a) { a.x.data += 2; });
}

TEST(PrepareBlocksTest, ACpuComputesOpByOp) {
  OpFixture cpu({available_devices().front(), DType::kF32});
  const Values v = random_values({8, 1, 16}, 1);
  Tower tower(cpu, v, {{2}, 2}, std::vector<float>(16, 1.0f));
  EXPECT_FALSE(tower.prepare(2));
  EXPECT_FALSE(ops::prepare_blocks(cpu.device(), {}));
  const Values narrow = random_values({8, 1, 24}, 1);
  const Tower other(cpu, narrow, {{2}, 2}, std::vector<float>(16, 1.0f));
  ops::BlockLayers mixed{.norm1_weight = tower.layers().norm1_weight,
                         .norm1_bias = tower.layers().norm1_bias,
                         .norm2_weight = tower.layers().norm2_weight,
                         .norm2_bias = tower.layers().norm2_bias,
                         .epsilon = 1e-6f,
                         .qkv = tower.layers().qkv,
                         .proj = tower.layers().proj,
                         .fc1 = tower.layers().fc1,
                         .fc2 = other.layers().fc2,
                         .activation = ops::Activation::kGeluTanh,
                         .num_heads = 1};
  expect_error(ErrorCode::kInvalidArgument, "prepare_blocks: layers do not follow one another",
               [&] {
                 (void)ops::prepare_blocks(cpu.device(), {&mixed, 1});
               });
}

}  // namespace
}  // namespace fovea::test
