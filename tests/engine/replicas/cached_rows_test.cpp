// Rows that a replica stores in the encoder cache, and sends from there, on a device whose queues
// run as late as they may.
#include <gtest/gtest.h>

#include <cstring>

#include "engine/replicas/replica_session.h"
#include "graph/harness.h"
#include "rows/row_cache.h"

namespace fovea {
namespace {

using test::Batch;
using test::DeferredStream;

class CachedRows : public ::testing::Test {
 protected:
  /// Memory of the caller "on the device".
  struct Room {
    explicit Room(std::size_t floats) : memory(floats, -1.0F) {
      block = {.data = memory.data(), .device = 0, .rows = 1'000};
    }
    std::vector<float> memory;
    RowBlock block;
    Embedding result;
    [[nodiscard]] RowTarget target() { return {&result, &block}; }
  };

  CachedRows() { replica_.graphs().capture(); }

  [[nodiscard]] Batch item(std::uint64_t seed) const {
    return test::mock_batch(model_, {{1, 4, 4}}, seed);
  }
  [[nodiscard]] std::vector<float> rows_of(const Batch& batch) const {
    return model_.reference(batch.items().front());
  }
  [[nodiscard]] Room room() const { return Room(rows_of(item(0)).size()); }
  /// As a call of encode() of one item on the caller's stream: finds it, or encodes and stores it.
  void encode(const std::string& key, const Batch& batch, Room& to) {
    RowCache::Claim claim = cache_.claim(key);
    session_.attach({&stream_, 1});
    if (claim.turn() == RowCache::Turn::kEncode) {
      encode_and_keep(session_, batch, to, claim);
    } else {
      move(std::move(claim), to.target());
    }
    session_.finish();
  }
  static void encode_and_keep(ReplicaSession& session, const Batch& batch, Room& to,
                              RowCache::Claim& claim) {
    claim.describe({});
    const TowerItem item{batch.pointers().front(), to.target(), &claim};
    session.begin({&item, 1}, {});
  }
  void move(RowCache::Claim claim, const RowTarget& target) {
    std::vector<RowMove> moves;
    moves.emplace_back(std::move(claim), target);
    session_.move(std::move(moves));
  }

  test::MockModel model_;
  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  test::DeferredDevice device_{*kernels_, test::Schedule::kLast};
  std::unique_ptr<Stream> callers_ = device_.create_copy_stream();
  CallerStream stream_{.device = 0, .handle = static_cast<DeferredStream*>(callers_.get())};
  Replica replica_{model_, device_, test::small_options()};
  const std::int64_t item_bytes_ =
      static_cast<std::int64_t>(RowArena::rounded(rows_of(item(0)).size() * sizeof(float)));
  RowCache cache_{std::vector<Device*>{&device_}, 2 * item_bytes_, 3 * item_bytes_};
  ReplicaSession session_{replica_};
};

TEST_F(CachedRows, AreThoseOfTheTower) {
  const Batch batch = item(1);
  Room first = room();
  Room second = room();
  encode("a", batch, first);
  encode("a", batch, second);
  callers_->synchronize();
  EXPECT_EQ(first.memory, rows_of(batch));
  EXPECT_EQ(second.memory, rows_of(batch));
  EXPECT_EQ(second.result.rows, batch.items().front().plan.spec.out_rows);
  EXPECT_EQ(cache_.stats().device.hits, 1);
}

TEST_F(CachedRows, ComeWithoutAWaitOfTheHost) {
  const Batch batch = item(1);
  std::vector<Room> rooms(4, room());
  for (Room& one : rooms) one.block.data = one.memory.data();
  encode("a", batch, rooms[0]);
  const std::int64_t before = device_.host_waits();
  for (std::size_t i = 1; i < rooms.size(); ++i) encode("a", batch, rooms[i]);
  EXPECT_EQ(device_.host_waits(), before);
  EXPECT_EQ(rooms[1].memory, room().memory) << "nothing has run yet";
  callers_->synchronize();
  for (const Room& one : rooms) EXPECT_EQ(one.memory, rows_of(batch));
}

TEST_F(CachedRows, AreNotOverwrittenBeforeSlowStreamsHaveReadThem) {
  Room first = room();
  Room again = room();
  encode("a", item(1), first);
  encode("a", item(1), again);
  std::vector<Room> others(6, room());
  ReplicaSession other(replica_);  // of a caller without a stream, which waits for its rows
  for (std::size_t i = 0; i < others.size(); ++i) {  // all of them pass through the memory
    others[i].block.data = others[i].memory.data();
    const Batch batch = item(10 + i);
    RowCache::Claim claim = cache_.claim("other " + std::to_string(i));
    encode_and_keep(other, batch, others[i], claim);
    other.finish();
    EXPECT_EQ(others[i].memory, rows_of(batch)) << i;
  }
  callers_->synchronize();
  EXPECT_EQ(first.memory, rows_of(item(1)));
  EXPECT_EQ(again.memory, rows_of(item(1)));
  EXPECT_GT(cache_.stats().evictions, 0);
}

TEST_F(CachedRows, ComeBackFromTheHostInOrder) {
  std::vector<Room> rooms(8, room());
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    rooms[i].block.data = rooms[i].memory.data();
    encode(std::to_string(i % 4), item(i % 4), rooms[i]);
  }
  callers_->synchronize();
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    EXPECT_EQ(rooms[i].memory, rows_of(item(i % 4))) << i;
  }
  EXPECT_EQ(cache_.stats().host.hits, 4);
  EXPECT_EQ(cache_.stats().misses, 4);
}

TEST_F(CachedRows, AreWrittenBehindWhatTheStreamHeld) {
  Room first = room();
  encode("a", item(1), first);
  callers_->synchronize();
  Room to = room();
  std::vector<float> seen(to.memory.size());
  callers_->copy(reinterpret_cast<std::byte*>(seen.data()),
                 reinterpret_cast<const std::byte*>(to.memory.data()), seen.size() * sizeof(float));
  encode("a", item(1), to);
  {
    ReplicaSession other(replica_);
    const Batch more = item(99);
    std::vector<TowerItem> staying;
    for (const PreparedItem* item : more.pointers()) staying.push_back({.prepared = item});
    other.begin(staying, {});
  }
  callers_->synchronize();
  EXPECT_EQ(seen, std::vector<float>(seen.size(), -1.0F)) << "the memory as it was before the call";
  EXPECT_EQ(to.memory, rows_of(item(1)));
}

TEST_F(CachedRows, AnotherCallersStreamDoesNotHoldUpAHit) {
  Room first = room();
  bool has_run = false;
  static_cast<DeferredStream&>(*callers_).submit([&] { has_run = true; });
  encode("a", item(1), first);  // stored in front of what waits for this caller
  const std::unique_ptr<Stream> reader = device_.create_copy_stream();
  cache_.claim("a").slot().begin_read(*reader);
  reader->synchronize();
  EXPECT_FALSE(has_run);
  callers_->synchronize();
}

TEST_F(CachedRows, GoToTheHostWithTheCall) {
  Room first = room();
  encode("a", item(1), first);
  Embedding result;
  session_.attach({});
  move(cache_.claim("a"), {&result});
  session_.finish();
  const std::vector<float> expected = rows_of(item(1));
  ASSERT_EQ(result.data.size(), expected.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(result.data.data(), expected.data(), result.data.size()), 0);
  EXPECT_EQ(cache_.stats().freeable_bytes, cache_.stats().bytes) << "nobody holds them any more";
  callers_->synchronize();
}

}  // namespace
}  // namespace fovea
