// Replicas of mock models on simulated devices: any number gives the rows of one, in order, and an
// error names its replica.
#include "engine/replicas/group_session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "engine/rows/host_room.h"
#include "graph/deferred_device.h"
#include "graph/dual_model.h"
#include "graph/mock_model.h"
#include "ops/cpu/cpu_kernels.h"
#include "rows/row_cache.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using test::DeferredDevice;
using test::DualModel;
using test::Grid;
using test::MockModel;

using Items = std::vector<PreparedItem>;
using Floats = std::vector<float>;

std::vector<TowerItem> tower_items(const Items& items, std::vector<Embedding>& rows) {
  std::vector<TowerItem> result;
  for (std::size_t i = 0; i < items.size(); ++i) result.push_back({&items[i], {&rows[i]}});
  return result;
}

Floats values(const Embedding& rows) {
  Floats result(rows.data.size() / sizeof(float));
  if (!result.empty()) std::memcpy(result.data(), rows.data.data(), rows.data.size());
  return result;
}

/// Replicas on devices of their own, each with a copy of one model.
template <class Model>
class Group {
 public:
  using Configure = std::function<void(std::size_t rank, GraphManagerOptions& options)>;

  explicit Group(std::size_t num_replicas, const Model& model = Model(),
                 const Configure& configure = nullptr)
      : models_(num_replicas, model) {
    for (std::size_t rank = 0; rank < num_replicas; ++rank) {
      devices_.push_back(make_device(rank));
      GraphManagerOptions options;
      options.user.encoder_cudagraph_max_vision_items_per_batch = 4;
      options.missing = MissingGraph::kCapture;
      if (configure) configure(rank, options);
      parts_.push_back(std::make_unique<Replica>(models_[rank], *devices_.back(), options));
    }
    group_ = std::make_unique<ReplicaGroup>(std::move(parts_));
    session_ = std::make_unique<GroupSession>(*group_);
  }

  [[nodiscard]] std::vector<Embedding> encode(const Items& items, const EncodeOptions& how = {}) {
    std::vector<Embedding> rows(items.size());
    encode_into(rows, items, how);
    return rows;
  }

  void encode_into(std::vector<Embedding>& rows, const Items& items,
                   const EncodeOptions& how = {}) {
    try {
      session_->begin(tower_items(items, rows), how);
      session_->finish();
    } catch (...) {
      session_->abandon();
      throw;
    }
  }

  /// Encodes and compares every item with the model's plain loop, bit by bit.
  void expect_right(const Items& items) {
    const std::vector<Embedding> rows = encode(items);
    ASSERT_EQ(rows.size(), items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      EXPECT_EQ(rows[i].rows, items[i].plan.spec.out_rows) << "item " << i;
      EXPECT_EQ(values(rows[i]), models_.front().reference(items[i])) << "item " << i;
    }
  }

  [[nodiscard]] std::vector<ReplicaStats> stats() const { return group_->stats(); }
  [[nodiscard]] GroupSession* operator->() { return session_.get(); }
  [[nodiscard]] Device& device(std::size_t rank) { return *devices_[rank]; }
  [[nodiscard]] DeferredDevice& gpu(std::size_t rank) {
    return dynamic_cast<DeferredDevice&>(device(rank));
  }

 private:
  /// Even ranks compute in host memory, odd ones stand for GPUs.
  [[nodiscard]] std::unique_ptr<Device> make_device(std::size_t rank) const {
    if (rank % 2 == 0) return make_cpu_device(1, *kernels_);
    return std::make_unique<DeferredDevice>(*kernels_, test::Schedule::kLast);
  }

  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::vector<Model> models_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<Replica>> parts_;
  std::unique_ptr<ReplicaGroup> group_;
  std::unique_ptr<GroupSession> session_;
};

using MockGroup = Group<MockModel>;

/// Has every replica pack by units.
void by_units(std::size_t, GraphManagerOptions& options) {
  options.packing = PackingPolicy::kUnits;
}

Items mock_items(const std::vector<Grid>& grids) {
  const MockModel model;
  Items items;
  for (const Grid& grid : grids) items.push_back(model.make_item(grid, items.size()));
  return items;
}

// 4, 16, 81, 8 and 1 tokens; the third fits no budget.
Items five_items() { return mock_items({{1, 4, 4}, {1, 8, 8}, {1, 18, 18}, {2, 4, 4}, {1, 2, 2}}); }

TEST(GroupSession, AnyNumberOfReplicasGivesTheRowsOfTheModel) {
  for (std::size_t replicas = 1; replicas <= 8; ++replicas) {
    SCOPED_TRACE(replicas);
    MockGroup group(replicas);
    for (int round = 0; round < 3; ++round) group.expect_right(five_items());
    const Stats all = sum(group.stats());
    EXPECT_EQ(all.graph_hits + all.graph_misses, 3 * 5);
  }
}

TEST(GroupSession, ReplicasWithoutItemsRunNothing) {
  MockGroup group(4);
  group.expect_right(mock_items({{1, 8, 8}}));
  const std::vector<ReplicaStats> stats = group.stats();
  EXPECT_EQ(stats[0].stats.sub_batches, 1);
  for (std::size_t rank = 1; rank < 4; ++rank) EXPECT_EQ(stats[rank].stats.sub_batches, 0);
}

TEST(GroupSession, EmptyBatchesAndEmptyItemsAreSkipped) {
  MockGroup group(3);
  EXPECT_TRUE(group.encode({}).empty());
  EXPECT_EQ(sum(group.stats()).sub_batches, 0);
  group.expect_right(mock_items({{1, 0, 0}, {1, 4, 4}, {1, 0, 0}, {1, 0, 0}}));
  EXPECT_EQ(sum(group.stats()).skipped, 3);
}

TEST(GroupSession, GraphsMayBeOffOnOneReplica) {
  MockGroup group(3, MockModel(), [](std::size_t rank, GraphManagerOptions& options) {
    options.user.cudagraph_mm_encoder = rank != 1;
  });
  group.expect_right(mock_items(std::vector<Grid>(6, {1, 4, 4})));
  const std::vector<ReplicaStats> stats = group.stats();
  EXPECT_EQ(stats[0].stats.graph_hits, 2);
  EXPECT_EQ(stats[1].stats.graph_misses, 2);
  EXPECT_EQ(stats[1].stats.miss_reasons.at("disabled"), 2);
  EXPECT_EQ(stats[2].stats.graph_hits, 2);
}

TEST(GroupSession, TwoTowersGiveTheRowsOfTheModel) {
  const DualModel model(1088);
  Items items;
  for (const auto& [w, h] : {std::pair{1, 1}, {2, 3}, {1, 1}, {2, 2}, {3, 1}}) {
    items.push_back(model.make_crop(w, h, items.size()));
  }
  EXPECT_EQ(items[1].plan.spec.out_rows, 903);  // 272 + 1 + 600 and 30 newlines
  for (const std::size_t replicas : {1, 2, 3, 8}) {
    SCOPED_TRACE(replicas);
    Group<DualModel> group(replicas, model);
    group.expect_right(items);
  }
}

TEST(GroupSession, AFailingReplicaLeavesTheRowsOfTheOthers) {
  const Items items = mock_items(std::vector<Grid>(6, {1, 8, 8}));
  MockGroup group(3);
  group.gpu(1).set_limit(0);
  std::vector<Embedding> rows(items.size());
  test::expect_error(ErrorCode::kOutOfMemory, "replica 1 on ",
                     [&] { group.encode_into(rows, items); });
  for (const std::size_t item : {0, 3, 2, 5}) {  // those of replicas 0 and 2
    EXPECT_EQ(values(rows[item]), MockModel().reference(items[item])) << "item " << item;
  }
  EXPECT_TRUE(rows[1].data.empty());
  group.gpu(1).set_limit(std::numeric_limits<std::size_t>::max());
  group.expect_right(items);
}

TEST(GroupSession, RowsLeaveWhileTheNextBatchRuns) {
  MockGroup group(2);
  const std::vector<Items> batches{five_items(), mock_items({{1, 6, 6}, {1, 4, 4}}), five_items()};
  std::vector<std::vector<Embedding>> rows;
  for (const Items& items : batches) rows.emplace_back(items.size());
  for (std::size_t i = 0; i < batches.size(); ++i) {
    group->begin(tower_items(batches[i], rows[i]), {});
  }
  group->finish();
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const std::vector<Embedding> alone = group.encode(batches[i]);
    for (std::size_t j = 0; j < alone.size(); ++j) EXPECT_EQ(rows[i][j].data, alone[j].data);
  }
}

TEST(GroupSession, WhatWasBegunCanBeGivenUp) {
  MockGroup group(2);
  const Items items = five_items();
  {
    std::vector<Embedding> rows(items.size());
    group->begin(tower_items(items, rows), {});
    group->abandon();
  }
  group.expect_right(items);
}

TEST(GroupSession, TheFirstOfSeveralErrorsIsReported) {
  const Items items = mock_items(std::vector<Grid>(8, {1, 4, 4}));
  MockGroup group(4);
  group.gpu(1).set_limit(0);
  group.gpu(3).set_limit(0);
  for (int round = 0; round < 20; ++round) {
    test::expect_error(ErrorCode::kOutOfMemory, "replica 1 on ",
                       [&] { (void)group.encode(items); });
  }
}

// Clips of 80, 48 and 5 rows, and images of 4 and 144, the last of which fits no budget.
Items clips_and_images() {
  return mock_items({{20, 4, 4}, {1, 4, 4}, {3, 8, 8}, {1, 24, 24}, {5, 2, 2}});
}

TEST(GroupSession, ItemsThatReplicasShareGiveTheRowsOfTheModel) {
  const Items items = clips_and_images();
  for (std::size_t replicas = 1; replicas <= 4; ++replicas) {
    SCOPED_TRACE(replicas);
    MockGroup group(replicas, MockModel(), by_units);
    for (int round = 0; round < 2; ++round) group.expect_right(items);
    const std::vector<Embedding> rows = group.encode(items);
    EXPECT_EQ(rows[0].graph, GraphUse::kHit);
    EXPECT_EQ(rows[3].graph, GraphUse::kMiss);
    for (const Embedding& item : rows) EXPECT_GT(item.times.encode_ms, 0);
    const std::vector<ReplicaStats> stats = group.stats();
    EXPECT_EQ(sum(stats).graph_hits, 3 * 4) << "an item counts once, however many share it";
    EXPECT_EQ(sum(stats).graph_misses, 3);
    for (const ReplicaStats& replica : stats) EXPECT_GT(replica.stats.sub_batches, 0);
  }
}

TEST(GroupSession, EqualUnitsOfAShareRunOnce) {
  Items items = mock_items({{12, 4, 4}});
  std::vector<std::uint8_t>& pixels = items[0].pixels;
  const auto unit = static_cast<std::ptrdiff_t>(items[0].plan.unit_bytes[0]);
  for (std::ptrdiff_t i = 1; i < 12; ++i) {
    std::copy_n(pixels.begin(), unit, pixels.begin() + i * unit);
  }
  MockGroup group(3, MockModel(), by_units);
  group.expect_right(items);
  EXPECT_EQ(group.encode(items)[0].units_reused, 3 * 3);
}

TEST(GroupSession, ASharedItemGoesToItsBlock) {
  const Items items = clips_and_images();
  const std::vector<Embedding> alone = MockGroup(1).encode(items);
  const std::vector<test::HostRoom> rooms = test::rooms_for(alone, RowDType::kFloat32, 8, 3);
  std::vector<Embedding> known(items.size());
  std::vector<TowerItem> tower;
  for (std::size_t i = 0; i < items.size(); ++i) {
    tower.push_back({&items[i], {&known[i], &rooms[i].block()}});
  }
  MockGroup group(3, MockModel(), by_units);
  group->begin(tower, {});
  group->finish();
  for (std::size_t i = 0; i < items.size(); ++i) rooms[i].expect_rows(alone[i]);
}

// As the takes of a long video come, one begin after the other.
TEST(GroupSession, SharesOfAnItemAreSharedAgain) {
  const Items items = mock_items({{20, 4, 4}});
  for (const std::size_t replicas : {1, 2, 3}) {
    SCOPED_TRACE(replicas);
    MockGroup group(replicas, MockModel(), by_units);
    Embedding rows;
    SharedItem shared({&items[0], {&rows}}, MockModel().graph_spec().out_width);
    for (const UnitRange& range : {UnitRange{0, 7}, {7, 1}, {8, 12}}) {
      const TowerItem take = shared.add(items[0], {.units = range, .counts = range.first == 0});
      group->begin({&take, 1}, {});
    }
    group->finish();
    shared.finish();
    EXPECT_EQ(values(rows), MockModel().reference(items[0]));
    EXPECT_EQ(rows.graph, GraphUse::kHit);
    EXPECT_EQ(sum(group.stats()).graph_hits, 1);
  }
}

// An item that is encoded and kept, with memory of so many bytes, and what is kept then.
void keep_clip(std::int64_t device_bytes, std::int64_t host_bytes, CacheUse use, bool is_shared) {
  const Items items = mock_items({{20, 4, 4}});
  MockGroup group(3, MockModel(), by_units);
  const std::vector<Device*> devices{&group.device(0), &group.device(1), &group.device(2)};
  RowCache cache(devices, device_bytes, host_bytes);
  std::vector<Embedding> rows(2);
  {
    RowCache::Claim claim = cache.claim("clip");
    claim.describe({});
    const TowerItem kept{&items[0], {&rows[0]}, &claim};
    group->begin({&kept, 1}, {});
    group->finish();
    EXPECT_EQ(claim.use(), use);
  }
  EXPECT_EQ(values(rows[0]), MockModel().reference(items[0]));
  EXPECT_EQ(group.stats()[1].stats.sub_batches > 0, is_shared);
  RowCache::Claim found = cache.claim("clip");
  ASSERT_EQ(found.turn() == RowCache::Turn::kRead, use == CacheUse::kMiss);
  if (use != CacheUse::kMiss) return;
  std::vector<RowMove> moves;
  moves.emplace_back(std::move(found), RowTarget{&rows[1]});
  group->move(std::move(moves));
  group->finish();
  EXPECT_EQ(values(rows[1]), values(rows[0]));
}

TEST(GroupSession, AnItemThatACacheKeepsOnTheHostIsShared) {
  keep_clip(0, 1 << 20, CacheUse::kMiss, true);
}

TEST(GroupSession, AnItemThatACacheHasNoRoomForIsShared) {
  keep_clip(0, 1 << 10, CacheUse::kBypass, true);
}

TEST(GroupSession, AnItemThatACacheKeepsOnADeviceStaysWhole) {
  keep_clip(1 << 20, 1 << 20, CacheUse::kMiss, false);
}

TEST(GroupSession, NothingIsKeptOfAnItemOfWhichAShareFails) {
  const Items items = mock_items({{20, 4, 4}});
  MockGroup group(2, MockModel(), by_units);
  const std::vector<Device*> devices{&group.device(0), &group.device(1)};
  RowCache cache(devices, 0, 1 << 20);
  Embedding rows;
  group.gpu(1).set_limit(0);
  {
    RowCache::Claim claim = cache.claim("clip");
    claim.describe({});
    const TowerItem kept{&items[0], {&rows}, &claim};
    test::expect_error(ErrorCode::kOutOfMemory, "replica 1 on ", [&] {
      group->begin({&kept, 1}, {});
    });
    group->abandon();
  }
  EXPECT_EQ(cache.stats().items, 0);
  EXPECT_EQ(cache.claim("clip").turn(), RowCache::Turn::kEncode);
}

TEST(GroupSession, PackedGreedilyEveryItemStaysWhole) {
  MockGroup group(2);
  group.expect_right(mock_items({{20, 4, 4}}));
  EXPECT_EQ(group.stats()[1].stats.sub_batches, 0);
}

TEST(GroupSession, AReplicaThatFailsAShareFailsTheBatch) {
  const Items items = clips_and_images();
  MockGroup group(3, MockModel(), by_units);
  group.gpu(1).set_limit(0);
  std::vector<Embedding> rows(items.size());
  test::expect_error(ErrorCode::kOutOfMemory, "replica 1 on ",
                     [&] { group.encode_into(rows, items); });
  group.gpu(1).set_limit(std::numeric_limits<std::size_t>::max());
  group.expect_right(items);
}

TEST(GroupSession, ASharedItemCanBeGivenUp) {
  MockGroup group(2, MockModel(), by_units);
  const Items items = clips_and_images();
  {
    std::vector<Embedding> rows(items.size());
    group->begin(tower_items(items, rows), {});
    group->abandon();
  }
  group.expect_right(items);
}

TEST(GroupSession, ASingleReplicaDoesNotNameItself) {
  MockModel broken(test::MockOptions{.forgotten_buffer = "live"});
  MockGroup group(1, broken);
  try {
    (void)group.encode(mock_items({{1, 4, 4}}));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("replica"), std::string::npos) << error.what();
  }
}

TEST(GroupSession, TimesOfAShareAddUpByRows) {
  MockGroup group(2);
  const std::vector<Embedding> rows = group.encode(mock_items({{1, 8, 8}, {1, 4, 4}, {1, 4, 8}}));
  // Replica 0 has the first item alone, replica 1 the others, of 4 and 8 rows.
  EXPECT_GT(rows[0].times.encode_ms, 0);
  EXPECT_DOUBLE_EQ(rows[2].times.encode_ms, 2 * rows[1].times.encode_ms);
}

}  // namespace
}  // namespace fovea
