// Attention of a team on every backend: members that share a device, each with a stream, an arena
// and a thread of its own, get the rows that one alone does.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <latch>
#include <limits>
#include <memory>
#include <optional>
#include <thread>

#include "fovea/tower/device/team.h"
#include "fovea/tower/ops/blocks.h"
#include "fovea/tower/ops/projected_attention.h"
#include "ops/projected_attention_steps.h"
#include "ops/quantized.h"
#include "support/expect_error.h"
#include "support/op_fixture.h"

namespace fovea::test {
namespace {

/// Members that share a GPU need queues of their own there, or work of one that sits behind a
/// meeting of another keeps both waiting; and the driver may load a kernel only when the GPU is
/// idle. Read when the process first uses a GPU.
[[maybe_unused]] const int kAreSet =
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0) | setenv("CUDA_MODULE_LOADING", "EAGER", 0);

constexpr std::size_t kArenaBytes = std::size_t{8} << 20;

/// CUDA does not promise that kernels of several streams run side by side, which members that share
/// a GPU need: one time in thirty or so the first kernel of one of four or eight members starts
/// only when the others have stopped waiting for it, whatever the kernels are.
constexpr int kAttemptsOnOneGpu = 5;

/// How the op is made of others.
enum class Way { kProjected, kHeads };

/// Everything of an attention over a projection, with as many rows as a team of `size` has room
/// for. Rows beyond the sequences hold NaN.
class TeamAttention {
 public:
  static constexpr std::int64_t kFeatures = 272;

  TeamAttention(OpFixture& f, Heads heads, const std::vector<std::int32_t>& lengths, int size,
                ops::WeightFormat format = ops::WeightFormat::kNative)
      : f_(f),
        heads_(heads),
        size_(size),
        rows_(offsets(lengths).back()),
        room_(TeamPart{0, size}.room(rows_)) {
    std::mt19937_64 generator(static_cast<std::uint64_t>(rows_ + size));
    const auto random = [&](std::int64_t columns, float scale) {
      std::vector<float> values = normal_values(generator, rows_ * columns);
      for (float& value : values) value *= scale;
      values.resize(static_cast<std::size_t>(size_ * room_ * columns),
                    std::numeric_limits<float>::quiet_NaN());
      return values;
    };
    const std::int64_t width = heads.width();
    const std::vector<float> weight = f.rounded(normal_values(generator, 3 * width * kFeatures));
    std::vector<float> bias = normal_values(generator, 3 * width);
    for (float& value : bias) value *= 0.5f;
    bias = f.rounded(std::move(bias));
    projection_ = ops::pack_linear(f.device(), view_of(weight, {3 * width, kFeatures}),
                                   view_of(bias, {3 * width}), format);
    const std::int64_t all = size_ * room_;
    // Scores so small that roundings of q and k the other way, by another GEMM, change no weight
    // much.
    x_ = f.activations({all, kFeatures}, random(kFeatures, 0.04f));
    std::vector<float> cos = random(heads.dim / 2, 1.0f);
    std::vector<float> sin = cos;
    for (float& angle : cos) angle = std::cos(angle);
    for (float& angle : sin) angle = std::sin(angle);
    cos_ = f.floats({all, heads.dim / 2}, cos);
    sin_ = f.floats({all, heads.dim / 2}, sin);
    const std::vector<std::int32_t> cu = offsets(lengths);
    cu_ = f.ints({static_cast<std::int64_t>(cu.size())}, cu);
    norms_ = {f.floats({heads.dim}, normal_values(generator, heads.dim)),
              f.floats({heads.dim}, normal_values(generator, heads.dim))};
  }

  void normalize_heads() { has_norms_ = true; }
  void quantize_rows() { quantizes_ = true; }

  /// The live rows, computed by one device.
  std::vector<float> alone() {
    const Tensor live = f_.ints({1}, {static_cast<std::int32_t>(rows_)});
    const Tensor qkv = f_.poisoned({size_ * room_, 3 * heads_.width()});
    ExecContext ctx = f_.ctx();
    const Arena::Scope scope(ctx.arena);
    const TensorView rows = make_rows(ctx.arena, size_ * room_);
    ops::projected_attention(ctx,
                             args(x_.view(), qkv.view(), cos_.view(), sin_.view(), live, rows));
    std::vector<float> got = read(rows);
    got.resize(static_cast<std::size_t>(rows_ * heads_.width()));
    return got;
  }

  /// The same by the team, several times in the same memory.
  std::vector<float> together(Way way) {
    // A library may load a kernel at its first use, when the GPU is idle: never while a member that
    // shares it waits for the one that loads.
    (void)attempt(way);
    std::optional<std::vector<float>> rows = attempt(way);
    const bool is_gpu = !f_.device().properties().host_memory;
    for (int i = 1; is_gpu && !rows && i < kAttemptsOnOneGpu; ++i) rows = attempt(way);
    EXPECT_TRUE(rows) << "a member was lost";
    return rows.value_or(std::vector<float>{});
  }

 private:
  /// @return nothing if a member was lost.
  std::optional<std::vector<float>> attempt(Way way) {
    std::deque<Member> members;
    for (int rank = 0; rank < size_; ++rank) members.emplace_back(f_, TeamPart{rank, size_}, rows_);
    const Buffer lost = f_.device().allocate_host(sizeof(std::uint32_t));
    std::vector<std::thread> threads;
    std::vector<TensorView> outs(members.size());
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      const Member& member = members[rank];
      Team& team = members[rank].team;
      team.size = size_;
      team.rank = static_cast<int>(rank);
      team.is_lost = reinterpret_cast<std::uint32_t*>(lost.data());
      for (std::size_t other = 0; other < members.size(); ++other) {
        team.distance[other] = members[other].memory.data() - member.memory.data();
        team.flags[other] = reinterpret_cast<TeamFlags*>(members[other].flags.data());
      }
    }
    std::latch have_context(size_);
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      threads.emplace_back([&, rank] {
        // Gives the thread its context, as memory of an engine does. Memory is given back when the
        // GPU is idle: before a member that shares it waits for this one.
        (void)f_.device().allocate(1);
        have_context.arrive_and_wait();
        outs[rank] = run(members[rank], way);
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (*reinterpret_cast<const std::uint32_t*>(lost.data()) != 0) return std::nullopt;
    std::vector<float> all;
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      const std::vector<float> rows = read(outs[rank]);
      const auto live = TeamPart{static_cast<int>(rank), size_}.of(rows_).count * heads_.width();
      all.insert(all.end(), rows.begin(), rows.begin() + live);
    }
    return all;
  }

  struct Member {
    Member(OpFixture& f, const TeamPart& part, std::int64_t rows)
        : stream(f.device().create_stream()),
          memory(f.device().allocate(kArenaBytes)),
          flags(f.device().allocate(sizeof(TeamFlags))),
          live(f.ints({1}, {static_cast<std::int32_t>(part.of(rows).count)})) {}
    std::unique_ptr<Stream> stream;
    Buffer memory;
    Buffer flags;
    Tensor live;
    Team team;
  };

  /// Rows of a tensor that a member has.
  [[nodiscard]] ConstTensorView part(const Tensor& tensor, int rank) const {
    return row_range(tensor.view(), rank * room_, room_);
  }

  TensorView run(Member& member, Way way) {
    Arena arena(member.memory.data(), kArenaBytes);
    ExecContext ctx{*member.stream, f_.device().kernels(), arena, *member.stream};
    ctx.team = &member.team;
    const TensorView out = make_rows(arena, room_);
    for (int repetition = 0; repetition < 3; ++repetition) {
      const Arena::Scope scope(arena);
      const TensorView qkv = arena.tensor(f_.dtype(), {room_, 3 * heads_.width()});
      const int rank = member.team.rank;
      const ops::ProjectedAttentionArgs all =
          args(part(x_, rank), qkv, part(cos_, rank), part(sin_, rank), member.live, out);
      if (way == Way::kProjected) {
        ops::projected_attention(ctx, all);
      } else {
        ops::linear(ctx, ops::projection_args(all));
        ops::head_attention(ctx, ops::head_attention_args(all));
      }
    }
    member.stream->synchronize();
    return out;
  }

  [[nodiscard]] ops::ProjectedAttentionArgs args(ConstTensorView x, TensorView qkv,
                                                 ConstTensorView cos, ConstTensorView sin,
                                                 const Tensor& live, TensorView out) const {
    ops::ProjectedAttentionArgs args{.x = x,
                                     .projection = projection_,
                                     .qkv = qkv,
                                     .cos = cos,
                                     .sin = sin,
                                     .sequences = {.cu_seqlens = cu_.view(),
                                                   .max_seqlen = size_ * room_,
                                                   .rows = OpFixture::live(live)},
                                     .num_heads = heads_.count,
                                     .head_dim = heads_.dim,
                                     .scale = heads_.scale(),
                                     .out = out};
    if (has_norms_) args.norms = {.q = norms_[0].view(), .k = norms_[1].view(), .v = {}};
    return args;
  }

  [[nodiscard]] TensorView make_rows(Arena& arena, std::int64_t rows) const {
    const Shape shape{rows, heads_.width()};
    return quantizes_ ? ops::quantized_tensor(arena, shape) : arena.tensor(f_.dtype(), shape);
  }

  [[nodiscard]] std::vector<float> read(const TensorView& rows) {
    if (rows.dtype == DType::kF8E4M3) return read_quantized(rows);
    const Tensor copy = make_tensor(f_.device(), rows.dtype, rows.shape);
    f_.stream().copy(copy.buffer.data(), rows.data, rows.bytes());
    f_.stream().synchronize();
    return f_.read(copy);
  }

  [[nodiscard]] std::vector<float> read_quantized(const TensorView& rows) {
    std::vector<std::uint8_t> bits(static_cast<std::size_t>(rows.shape.elements()));
    std::vector<float> scale(static_cast<std::size_t>(rows.shape[0]));
    const ops::QuantizedRows parts = ops::parts_of(rows);
    f_.stream().copy(reinterpret_cast<std::byte*>(bits.data()), parts.values, bits.size());
    f_.stream().copy(reinterpret_cast<std::byte*>(scale.data()),
                     reinterpret_cast<const std::byte*>(parts.scale), scale.size() * sizeof(float));
    f_.stream().synchronize();
    std::vector<float> values;
    for (std::size_t i = 0; i < bits.size(); ++i)
      values.push_back(e4m3_to_f32(bits[i]) * scale[i * scale.size() / bits.size()]);
    return values;
  }

  OpFixture& f_;
  Heads heads_;
  int size_;
  std::int64_t rows_;
  std::int64_t room_;
  bool has_norms_ = false;
  bool quantizes_ = false;
  ops::PackedLinear projection_;
  Tensor x_, cos_, sin_, cu_;
  std::array<Tensor, 2> norms_;
};

class TeamAttentionTest : public ::testing::TestWithParam<OpCase> {
 protected:
  void expect_equal(TeamAttention& attention, Way way) {
    const std::vector<float> want = attention.alone();
    const std::vector<float> got = attention.together(way);
    ASSERT_EQ(got.size(), want.size());
    if (f.exact_rows()) return expect_same_bits(got, want);
    f.expect_close(got, {want.begin(), want.end()}, OpClass::kAttention);
  }

  OpFixture f{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Devices, TeamAttentionTest, ::testing::ValuesIn(op_cases()), op_case_name);

TEST_P(TeamAttentionTest, MembersGetTheRowsOfOneAlone) {
  for (const std::int64_t dim : {8, 64, 72, 80, 128}) {
    for (const int size : {2, 4}) {
      SCOPED_TRACE(::testing::Message() << "heads of " << dim << ", team of " << size);
      TeamAttention attention(f, {4, dim}, {700}, size);
      expect_equal(attention, Way::kProjected);
    }
  }
}

TEST_P(TeamAttentionTest, SequencesLieAcrossMembers) {
  TeamAttention attention(f, {4, 72}, {13, 0, 331, 1, 300, 42}, 2);
  expect_equal(attention, Way::kProjected);
}

TEST_P(TeamAttentionTest, LastMembersMayHaveNoRows) {
  TeamAttention attention(f, {8, 64}, {40}, 8);
  expect_equal(attention, Way::kProjected);
}

TEST_P(TeamAttentionTest, HeadsAreNormalisedWhereTheirRowsAre) {
  TeamAttention attention(f, {4, 72}, {600}, 2);
  attention.normalize_heads();
  for (const Way way : {Way::kProjected, Way::kHeads}) expect_equal(attention, way);
}

TEST_P(TeamAttentionTest, OfE4M3MembersGetWhatOneAloneDoes) {
  if (!has_gpu_with(CudaAttention::kHopper) || f.exact_rows()) {
    GTEST_SKIP() << "E4M3 is of Hopper GPUs";
  }
  for (const std::int64_t dim : {64, 72}) {
    TeamAttention attention(f, {4, dim}, {100, 700}, 2, ops::WeightFormat::kFp8);
    expect_equal(attention, Way::kProjected);
  }
}

TEST_P(TeamAttentionTest, QuantizedRowsComeToMembersToo) {
  if (!has_gpu_with(CudaAttention::kHopper) || f.exact_rows()) {
    GTEST_SKIP() << "E4M3 is of Hopper GPUs";
  }
  for (const std::int64_t dim : {72, 80}) {  // stored by kernels, and copied by a step of its own
    TeamAttention attention(f, {4, dim}, {100, 700}, 2, ops::WeightFormat::kFp8);
    attention.quantize_rows();
    const std::vector<float> want = attention.alone();
    const std::vector<float> got = attention.together(Way::kProjected);
    ASSERT_EQ(got.size(), want.size());
    double error = 0;
    double square = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      error += std::pow(double{got[i]} - want[i], 2);
      square += std::pow(double{want[i]}, 2);
    }
    EXPECT_LT(std::sqrt(error / square), 0.05);  // two roundings, each off by 2.6 %
  }
}

TEST_P(TeamAttentionTest, HeadsThatATeamCannotDivideAreRefused) {
  TeamAttention attention(f, {3, 64}, {64}, 2);
  Team team{.size = 2};
  ExecContext ctx = f.ctx();
  ctx.team = &team;
  const Tensor qkv = f.poisoned({16, 3 * 3 * 64});
  const Tensor out = f.poisoned({16, 3 * 64});
  const Tensor cu = f.ints({2}, {0, 16});
  expect_error(ErrorCode::kInvalidArgument,
               "attention: 3 heads cannot be divided among a team of 2", [&] {
                 ops::attention(ctx, {.qkv = qkv.view(),
                                      .sequences = {.cu_seqlens = cu.view(), .max_seqlen = 16},
                                      .num_heads = 3,
                                      .head_dim = 64,
                                      .scale = 1,
                                      .out = out.view()});
               });
}

}  // namespace
}  // namespace fovea::test
