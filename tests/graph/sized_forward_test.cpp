// One forward at one capacity: sized once, then fed and submitted.
#include "graph/sized_forward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "graph/capture/forward_cost.h"
#include "graph/harness.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

TEST(ExactCapacity, CountsItemsTokensAndSequences) {
  const MockModel model;
  const Batch batch = mock_batch(model, {{1, 4, 4}, {2, 6, 4}});
  const GraphCapacity capacity = exact_capacity(batch.parts());
  EXPECT_EQ(capacity.items, 2);
  EXPECT_EQ(capacity.tokens, 4 + 2 * 6);
  EXPECT_EQ(capacity.seqs, 3);
  EXPECT_EQ(exact_capacity({}).tokens, 0);
}

TEST(ExactCapacity, CountsAnItemOnceHoweverManyPartsItHas) {
  const MockModel model;
  const Batch batch = mock_batch(model, {{5, 4, 4}, {1, 4, 4}});
  const PreparedItem& video = batch.items()[0];
  const std::vector<ItemPart> parts{
      {&video, 0, 0, 1}, {&video, 0, 2, 2}, ItemPart::whole(batch.items()[1], 0)};
  EXPECT_EQ(exact_capacity(parts), (GraphCapacity{.tokens = 16, .items = 2, .seqs = 4}));
}

class SizedForwardTest : public ::testing::Test {
 protected:
  /// A forward of `capacity` with memory for it.
  [[nodiscard]] SizedForward sized(const GraphCapacity& capacity) {
    SizedForward forward(model, *device, 0, capacity);
    memory.reserve(0, forward.need());
    return forward;
  }
  /// The rows of the batch, or of parts of it, after feed and submit.
  [[nodiscard]] Rows run(const SizedForward& forward) { return run(forward, batch.parts()); }
  [[nodiscard]] Rows run(const SizedForward& forward, const std::vector<ItemPart>& parts) {
    forward.feed(lane, memory, parts, scratch);
    forward.submit(lane, memory, /*is_recorded=*/false);
    lane.synchronize();
    const TensorView rows = forward.output(memory, parts);
    return {rows.as<float>(), rows.as<float>() + rows.shape.elements()};
  }
  [[nodiscard]] Rows expected() const { return model.reference(batch.items().front()); }

  MockModel model;
  std::unique_ptr<Kernels> kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::unique_ptr<Device> device = make_cpu_device(1, *kernels);
  Lane lane{*device};
  RunMemory memory{lane, 1};
  InputScratch scratch;
  Batch batch = mock_batch(model, {{1, 4, 4}});
};

TEST_F(SizedForwardTest, NeedsWhatItsForwardInputsAndRowsTake) {
  const GraphCapacity capacity{.tokens = 16, .items = 2, .seqs = 2};
  const SizedForward forward(model, *device, 0, capacity);
  EXPECT_EQ(forward.capacity(), capacity);
  EXPECT_EQ(forward.need().arena, measure_forward(model, *device, 0, capacity).arena_bytes);
  EXPECT_EQ(forward.need().input, InputLayout(model.inputs(0, capacity)).bytes());
  EXPECT_GE(forward.need().output, 16U * 32 * sizeof(float));
  EXPECT_EQ(model.forwards_run(), 0) << "sizing submits nothing";
}

TEST_F(SizedForwardTest, GivesTheSameRowsExactAndWithRoomToSpare) {
  const SizedForward exact = sized(exact_capacity(batch.parts()));
  EXPECT_TRUE(same_bits(run(exact), expected()));
  const SizedForward roomy = sized({.tokens = 64, .items = 4, .seqs = 4});
  memory.fill_with_nan();
  EXPECT_TRUE(same_bits(run(roomy), expected()));
}

TEST_F(SizedForwardTest, GivesTheRowsOfSomeUnits) {
  batch = mock_batch(model, {{3, 4, 4}});
  const Rows all = run(sized(exact_capacity(batch.parts())));
  const std::vector<ItemPart> last{{&batch.items()[0], 0, 1, 2}};
  const SizedForward some = sized({.tokens = 64, .items = 4, .seqs = 4});
  EXPECT_TRUE(same_bits(run(some, last), Rows(all.begin() + std::ssize(all) / 3, all.end())));
}

TEST_F(SizedForwardTest, OutputIsAPrefixOfTheBufferInItsMemory) {
  const SizedForward forward = sized({.tokens = 64, .items = 4, .seqs = 4});
  const TensorView rows = forward.output(memory, batch.parts());
  EXPECT_EQ(rows.data, memory.addresses(0).output);
  EXPECT_EQ(rows.shape, (Shape{4, 32}));
}

TEST_F(SizedForwardTest, ZerosAreNoLiveRows) {
  const SizedForward forward = sized({.tokens = 16, .items = 4, .seqs = 4});
  (void)run(forward);
  const std::int64_t live = model.rows_run();
  EXPECT_GT(live, 0);
  forward.feed_zeros(lane, memory);
  forward.submit(lane, memory, /*is_recorded=*/false);
  lane.synchronize();
  EXPECT_EQ(model.rows_run(), live);
  const std::byte* const inputs = memory.addresses(0).input;
  EXPECT_TRUE(std::all_of(inputs, inputs + forward.need().input,
                          [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST_F(SizedForwardTest, RefusesItemsThatAnInputIsTooSmallFor) {
  const SizedForward forward = sized({.tokens = 1, .items = 1, .seqs = 1});
  test::expect_error(ErrorCode::kUnavailable, "",
                     [&] { forward.feed(lane, memory, batch.parts(), scratch); });
  EXPECT_EQ(model.forwards_run(), 0);
}

}  // namespace
}  // namespace fovea
