// Rows that stay on a device reach the caller in the order of the caller's stream, without a wait
// of the host. The queues of this device run as late as they may.
#include <gtest/gtest.h>

#include <cstring>

#include "engine/replicas/replica_session.h"
#include "graph/harness.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using test::Batch;
using test::DeferredStream;

/// Memory "on the device" for the rows of a batch, and their results.
class Room {
 public:
  Room(const Batch& batch, std::int64_t width, RowDType dtype = RowDType::kFloat32)
      : results_(batch.items().size()) {
    for (const PreparedItem& item : batch.items()) {
      memory_.emplace_back(static_cast<std::size_t>(item.plan.spec.out_rows * width), -1.0F);
    }
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      blocks_.push_back({.data = memory_[i].data(),
                         .device = 0,
                         .dtype = dtype,
                         .rows = batch.items()[i].plan.spec.out_rows});
    }
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      items_.push_back({batch.pointers()[i], {&results_[i], &blocks_[i], dtype}});
    }
  }

  [[nodiscard]] std::span<const TowerItem> items() const { return items_; }
  [[nodiscard]] const std::vector<float>& rows(std::size_t item) const { return memory_[item]; }
  [[nodiscard]] std::vector<float>& rows(std::size_t item) { return memory_[item]; }
  [[nodiscard]] const Embedding& result(std::size_t item) const { return results_[item]; }
  [[nodiscard]] bool is_untouched() const {
    return std::ranges::all_of(memory_, [](const auto& rows) {
      return std::ranges::all_of(rows, [](float value) { return value == -1.0F; });
    });
  }

 private:
  std::vector<std::vector<float>> memory_;
  std::vector<RowBlock> blocks_;
  std::vector<Embedding> results_;
  std::vector<TowerItem> items_;
};

class RowsToGpus : public ::testing::Test {
 protected:
  RowsToGpus() { replica_.graphs().capture(); }

  [[nodiscard]] Batch batch(std::uint64_t seed) const {
    return test::mock_batch(model_, {{1, 4, 4}, {1, 2, 2}}, seed);
  }
  [[nodiscard]] Room room(const Batch& batch) const {
    return {batch, model_.graph_spec().out_width};
  }
  /// As a call of encode() that takes one batch.
  void encode(const Room& room) {
    session_.attach({&stream_, 1});
    session_.begin(room.items(), {});
    session_.finish();
  }
  void expect_rows(const Room& room, const Batch& batch) const {
    for (std::size_t i = 0; i < batch.items().size(); ++i) {
      const std::vector<float> expected = model_.reference(batch.items()[i]);
      EXPECT_EQ(room.rows(i), expected) << "item " << i;
    }
  }
  /// What a call of somebody else on the same replica does: its rows are waited for.
  void run_another_caller() {
    const Batch items = batch(99);
    ReplicaSession other(replica_);
    std::vector<TowerItem> staying;
    for (const PreparedItem* item : items.pointers()) staying.push_back({.prepared = item});
    other.begin(staying, {});
  }

  test::MockModel model_;
  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  test::DeferredDevice device_{*kernels_, test::Schedule::kLast};
  std::unique_ptr<Stream> callers_ = device_.create_copy_stream();
  CallerStream stream_{.device = 0, .handle = static_cast<DeferredStream*>(callers_.get())};
  Replica replica_{model_, device_, test::small_options()};
  ReplicaSession session_{replica_};
};

TEST_F(RowsToGpus, TheHostWaitsForNoRows) {
  const Batch items = batch(1);
  const Room to = room(items);
  run_another_caller();  // memory has grown
  encode(to);
  const std::int64_t before = device_.host_waits();
  const Batch next = batch(2);
  const Room after = room(next);
  session_.attach({&stream_, 1});
  session_.begin(after.items(), {});  // takes the other row memory, which is new
  session_.finish();
  const std::int64_t with_new_memory = device_.host_waits();
  callers_->synchronize();
  const Room again = room(items);
  const std::int64_t warm = device_.host_waits();
  encode(again);
  EXPECT_EQ(device_.host_waits(), warm);
  EXPECT_TRUE(again.is_untouched()) << "nothing has run yet";
  EXPECT_LE(with_new_memory, before + 1);
  callers_->synchronize();
  expect_rows(to, items);
  expect_rows(after, next);
  expect_rows(again, items);
}

TEST_F(RowsToGpus, WhatTheStreamHeldRunsBefore) {
  const Batch items = batch(1);
  Room to = room(items);
  std::vector<float> seen(to.rows(0).size());
  const std::size_t bytes = seen.size() * sizeof(float);
  callers_->copy(reinterpret_cast<std::byte*>(seen.data()),
                 reinterpret_cast<const std::byte*>(to.rows(0).data()), bytes);
  encode(to);
  const Batch more = batch(2);
  const Room elsewhere = room(more);
  for (int turn = 0; turn < 2; ++turn) encode(elsewhere);  // one takes the memory of the first
  run_another_caller();  // everything that may run on the replica does
  callers_->synchronize();
  EXPECT_EQ(seen, std::vector<float>(seen.size(), -1.0F)) << "the memory as it was before the call";
  expect_rows(to, items);
}

TEST_F(RowsToGpus, WhatIsPutOnTheStreamAfterwardsFindsTheRows) {
  const Batch items = batch(1);
  const Room to = room(items);
  encode(to);
  std::vector<float> seen(to.rows(0).size());
  callers_->copy(reinterpret_cast<std::byte*>(seen.data()),
                 reinterpret_cast<const std::byte*>(to.rows(0).data()),
                 seen.size() * sizeof(float));
  callers_->synchronize();
  EXPECT_EQ(seen, model_.reference(items.items()[0]));
}

TEST_F(RowsToGpus, RowsOnTheirWayAreNotOverwritten) {
  std::vector<Batch> batches;
  std::vector<Room> rooms;
  rooms.reserve(6);
  for (std::uint64_t seed = 0; seed < 6; ++seed) batches.push_back(batch(seed));
  for (const Batch& items : batches) rooms.push_back(room(items));
  for (std::size_t i = 0; i < batches.size(); ++i) encode(rooms[i]);
  run_another_caller();  // all towers run now, as early as their queue lets them
  callers_->synchronize();
  for (std::size_t i = 0; i < batches.size(); ++i) expect_rows(rooms[i], batches[i]);
}

TEST_F(RowsToGpus, ACallToTheHostDoesNotOverwriteRowsOnTheirWay) {
  const Batch first = batch(1);
  const Batch second = batch(2);
  const Room to = room(first);
  encode(to);
  for (int turn = 0; turn < 2; ++turn) {  // one of them takes the memory of the first
    std::vector<Embedding> results(second.items().size());
    std::vector<TowerItem> to_host;
    for (std::size_t i = 0; i < results.size(); ++i) {
      to_host.push_back({second.pointers()[i], {&results[i]}});
    }
    session_.begin(to_host, {});
    session_.finish();
    EXPECT_EQ(results[0].data.size(), model_.reference(second.items()[0]).size() * sizeof(float));
  }
  callers_->synchronize();
  expect_rows(to, first);
}

TEST_F(RowsToGpus, TargetsOnBothSidesGetTheirRows) {
  const Batch items = batch(3);
  const Room to = room(items);
  Embedding on_host;
  const std::vector<TowerItem> both{{items.pointers()[0], {&on_host}}, to.items()[1]};
  session_.attach({&stream_, 1});
  session_.begin(both, {});
  session_.finish();
  const std::vector<float> first = model_.reference(items.items()[0]);
  ASSERT_EQ(on_host.data.size(), first.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(on_host.data.data(), first.data(), on_host.data.size()), 0);
  callers_->synchronize();
  EXPECT_EQ(to.rows(1), model_.reference(items.items()[1]));
}

TEST_F(RowsToGpus, WithoutAStreamRowsAreThereInTheEnd) {
  const Batch items = batch(4);
  const Room to = room(items);
  session_.attach({});
  session_.begin(to.items(), {});
  session_.finish();
  expect_rows(to, items);
  EXPECT_EQ(to.result(0).rows, 4);
  EXPECT_EQ(to.result(0).width, model_.graph_spec().out_width);
  EXPECT_TRUE(to.result(0).data.empty());
}

TEST_F(RowsToGpus, NothingIsWrittenAfterACallWasGivenUp) {
  const Batch items = batch(5);
  Room to = room(items);
  session_.attach({&stream_, 1});
  session_.begin(to.items(), {});
  session_.abandon();
  std::ranges::fill(to.rows(0), 7.0F);
  run_another_caller();
  callers_->synchronize();
  EXPECT_EQ(to.rows(0), std::vector<float>(to.rows(0).size(), 7.0F));
}

TEST_F(RowsToGpus, ASessionEndsAfterItsRowsHaveLeft) {
  const Batch items = batch(6);
  const Room to = room(items);
  {
    ReplicaSession session(replica_);
    session.attach({&stream_, 1});
    session.begin(to.items(), {});
    session.finish();
  }
  expect_rows(to, items);
}

TEST_F(RowsToGpus, AnotherCallersRowsDoNotWaitForTheStream) {
  const Batch items = batch(7);
  const Room to = room(items);
  bool has_run = false;
  static_cast<DeferredStream&>(*callers_).submit([&] { has_run = true; });
  encode(to);
  run_another_caller();
  EXPECT_FALSE(has_run);
  callers_->synchronize();
  expect_rows(to, items);
}

}  // namespace
}  // namespace fovea
