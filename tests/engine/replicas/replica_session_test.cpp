// One device of an engine: rows reach their embeddings, whatever runs at the same time.
#include "engine/replicas/replica_session.h"

#include <gtest/gtest.h>

#include <cstring>

#include "graph/harness.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using test::Batch;
using test::Grid;

/// Results of one batch.
struct Results {
  explicit Results(const Batch& batch) : embeddings(batch.items().size()) {
    for (std::size_t i = 0; i < embeddings.size(); ++i) {
      items.push_back({batch.pointers()[i], {&embeddings[i]}});
    }
  }
  std::vector<Embedding> embeddings;
  std::vector<TowerItem> items;  // of the batch, which they refer to
};

/// On the CPU, and on a device whose work runs as late as it may.
class ReplicaSessionTest : public ::testing::TestWithParam<bool> {
 protected:
  ReplicaSessionTest() { replica_.graphs().capture(); }

  [[nodiscard]] Batch batch(const std::vector<Grid>& grids, std::uint64_t seed = 0) const {
    return test::mock_batch(model_, grids, seed);
  }
  void expect_rows(const Results& results, const Batch& batch) const {
    for (std::size_t i = 0; i < results.embeddings.size(); ++i) {
      const Embedding& embedding = results.embeddings[i];
      const std::vector<float> expected = model_.reference(batch.items()[i]);
      EXPECT_EQ(embedding.width, model_.graph_spec().out_width);
      EXPECT_EQ(embedding.rows, batch.items()[i].plan.spec.out_rows);
      ASSERT_EQ(embedding.data.size(), expected.size() * sizeof(float)) << "item " << i;
      EXPECT_EQ(std::memcmp(embedding.data.data(), expected.data(), embedding.data.size()), 0)
          << "item " << i;
    }
  }

  test::MockModel model_;
  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::unique_ptr<Device> device_ =
      GetParam() ? std::make_unique<test::DeferredDevice>(*kernels_, test::Schedule::kLast)
                 : make_cpu_device(1, *kernels_);
  Replica replica_{model_, *device_, test::small_options()};
  ReplicaSession session_{replica_};
};

TEST_P(ReplicaSessionTest, ReplaysAndEagerRunsGiveTheRowsOfTheModel) {
  const Batch items = batch({{1, 4, 4}, {2, 2, 4}, {1, 8, 8}});
  for (const bool eager : {false, true}) {
    Results results(items);
    session_.begin(results.items, {.enforce_eager = eager});
    session_.finish();
    expect_rows(results, items);
  }
  EXPECT_EQ(replica_.graphs().stats().graph_hits, 3);
}

TEST_P(ReplicaSessionTest, RowsLeaveWhileTheNextBatchesRun) {
  const Batch first = batch({{1, 4, 4}, {1, 8, 8}}, 1);
  const Batch second = batch({{1, 8, 8}, {1, 4, 4}}, 2);
  const Batch third = batch({{1, 2, 2}}, 3);
  Results results[] = {Results(first), Results(second), Results(third)};
  session_.begin(results[0].items, {});
  session_.begin(results[1].items, {});
  session_.begin(results[2].items, {});
  session_.finish();
  expect_rows(results[0], first);
  expect_rows(results[1], second);
  expect_rows(results[2], third);
}

TEST_P(ReplicaSessionTest, RowsOfABatchLieOneAfterTheOther) {
  const Batch items = batch({{1, 4, 4}, {1, 2, 2}});
  Results results(items);
  session_.begin(results.items, {});
  const std::span<const TensorView> rows = session_.rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].shape, (Shape{4, model_.graph_spec().out_width}));
  EXPECT_EQ(rows[1].data, rows[0].data + rows[0].bytes());
  session_.finish();
}

TEST_P(ReplicaSessionTest, RowMemoryGrowsToTheLargestBatchAndStays) {
  const auto encode = [&](const Batch& items) {
    for (int turn = 0; turn < 2; ++turn) {  // there are two row memories
      Results results(items);
      session_.begin(results.items, {});
      session_.finish();
    }
    return device_->allocated_bytes();
  };
  const std::size_t small = encode(batch({{1, 2, 2}}));
  const std::size_t large = encode(batch({{1, 8, 8}}));
  EXPECT_GT(large, small);
  EXPECT_EQ(encode(batch({{1, 2, 2}})), large);
}

TEST_P(ReplicaSessionTest, RowMemoryShrinksAfter32BatchesThatNeededLess) {
  const auto encode = [&](const Batch& items, int times) {
    for (int turn = 0; turn < 2 * times; ++turn) {  // there are two row memories
      Results results(items);
      session_.begin(results.items, {});
      session_.finish();
      expect_rows(results, items);
    }
    return device_->allocated_bytes();
  };
  const std::size_t large = encode(batch({{1, 8, 8}}), 1);
  EXPECT_EQ(encode(batch({{1, 2, 2}}), 15), large);
  EXPECT_LT(encode(batch({{1, 2, 2}}), 18), large);
}

TEST_P(ReplicaSessionTest, TimesOfABatchAreSharedByRows) {
  const Batch items = batch({{1, 2, 2}, {1, 4, 4}});  // 1 row and 4
  Results results(items);
  session_.begin(results.items, {});
  session_.finish();
  const StageTimes& one = results.embeddings[0].times;
  const StageTimes& four = results.embeddings[1].times;
  EXPECT_GT(one.encode_ms, 0);
  EXPECT_DOUBLE_EQ(four.encode_ms, 4 * one.encode_ms);
  EXPECT_DOUBLE_EQ(four.pack_ms, 4 * one.pack_ms);
}

TEST_P(ReplicaSessionTest, NoItemsAreFine) {
  Results results{Batch()};
  session_.begin(results.items, {});
  session_.finish();
  EXPECT_EQ(replica_.graphs().stats().sub_batches, 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, ReplicaSessionTest, ::testing::Bool(),
                         [](const auto& device) { return device.param ? "deferred" : "cpu"; });

TEST(ReplicaSession, WorksAgainAfterMemoryWasShort) {
  const test::MockModel model;
  const auto kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  test::DeferredDevice device(*kernels, test::Schedule::kLast);
  Replica replica(model, device, test::small_options());
  ReplicaSession session(replica);
  const Batch items = test::mock_batch(model, {{1, 4, 4}});
  device.fail_once_after(0);
  const std::vector<TowerItem> whole{{.prepared = items.pointers().front()}};
  test::expect_error(ErrorCode::kOutOfMemory, "", [&] { session.begin(whole, {}); });
  session.begin(whole, {});
  EXPECT_EQ(session.rows().size(), 1u);
}

}  // namespace
}  // namespace fovea
