// Rows that stay in memory of the GPU between calls: those of the host, found without a wait of the
// host, and not overwritten before slow streams have read them. Skipped without a GPU.
#include <gtest/gtest.h>

#include <cstring>

#include "engine/cached/noise.h"
#include "engine/rows/device_rows.h"
#include "engine/rows/gpu_room.h"
#include "fovea/fovea.h"

namespace fovea {
namespace {

using test::GpuRoom;
using test::noise;

constexpr std::int64_t kAmple = std::int64_t{64} << 20;

std::vector<MediaItem> images(unsigned count, unsigned seed = 0) {
  std::vector<MediaItem> items;
  for (unsigned i = 0; i < count; ++i) items.push_back(noise(64 + 32 * (i % 4), 96, seed + i));
  return items;
}

using DeviceCache = test::DeviceRows;

/// Each item alone, as a cache meets it.
std::vector<Embedding> encode_alone(Engine& engine, std::span<const MediaItem> items,
                                    RowDType dtype) {
  std::vector<Embedding> rows;
  for (const MediaItem& item : items) {
    rows.push_back(engine.encode({&item, 1}, {.dtype = dtype, .use_cache = false}).front());
  }
  return rows;
}

TEST_F(DeviceCache, HasTheRowsOfTheHostInEveryDtypeAndStride) {
  for (const char* const family : {"qwen3_vl", "deepseek_ocr", "step3_vl", "llama4"}) {
    SCOPED_TRACE(family);
    Engine engine = load({.encoder_device_cache_size = kAmple}, family);
    const std::vector<MediaItem> items = images(3);
    for (const MediaItem& item : items) (void)engine.encode({&item, 1});
    for (const RowDType dtype : {RowDType::kBFloat16, RowDType::kFloat32, RowDType::kFloat16}) {
      const std::vector<Embedding> expected = encode_alone(engine, items, dtype);
      const std::vector<Embedding> on_host = engine.encode(items, {.dtype = dtype});
      const std::vector<GpuRoom> rooms = rooms_for(expected, dtype, 8);
      (void)engine.encode(items, blocks_of(rooms), stream());
      for (std::size_t i = 0; i < items.size(); ++i) {
        EXPECT_EQ(on_host[i].data, expected[i].data);
        rooms[i].expect_rows(expected[i], *callers_);
      }
    }
    EXPECT_EQ(engine.stats().encoder_cache.misses, 3);
    EXPECT_EQ(engine.stats().encoder_cache.device.hits, 18);
  }
}

TEST_F(DeviceCache, AMissWritesToTheDestinationToo) {
  Engine engine = load({.encoder_device_cache_size = kAmple});
  const std::vector<MediaItem> items = images(4);
  const std::vector<Embedding> expected =
      engine.encode(items, {.dtype = RowDType::kBFloat16, .use_cache = false});
  for (int call = 0; call < 2; ++call) {
    const std::vector<GpuRoom> rooms = rooms_for(expected, RowDType::kBFloat16);
    (void)engine.encode(items, blocks_of(rooms), stream());
    for (std::size_t i = 0; i < items.size(); ++i) rooms[i].expect_rows(expected[i], *callers_);
  }
  EXPECT_EQ(engine.stats().encoder_cache.misses, 4);
}

TEST_F(DeviceCache, IsReadWithoutAWaitOfTheHost) {
  Engine engine = load({.encoder_device_cache_size = kAmple});
  const std::vector<MediaItem> items = images(4);
  const std::vector<Embedding> expected = engine.encode(items);
  const std::vector<GpuRoom> rooms = rooms_for(expected, RowDType::kFloat32);
  (void)engine.encode(items, blocks_of(rooms), stream());
  const std::int64_t before = engine.replica_stats()[0].host_waits;
  for (int call = 0; call < 10; ++call) (void)engine.encode(items, blocks_of(rooms), stream());
  EXPECT_EQ(engine.replica_stats()[0].host_waits, before);
  for (std::size_t i = 0; i < items.size(); ++i) rooms[i].expect_rows(expected[i], *callers_);
  EXPECT_EQ(engine.stats().encoder_cache.misses, 4);
}

TEST_F(DeviceCache, RowsComeBackFromTheHostWithoutAWaitOfTheHost) {
  constexpr std::int64_t kFewItems = 32 << 10;
  Engine engine = load({.encoder_cache_bytes = kAmple, .encoder_device_cache_size = kFewItems});
  const std::vector<MediaItem> items = images(48);
  const std::vector<Embedding> expected = encode_alone(engine, items, RowDType::kFloat32);
  const std::vector<GpuRoom> rooms = rooms_for(expected, RowDType::kFloat32);
  const std::vector<RowBlock> blocks = blocks_of(rooms);
  const auto pass = [&] {
    for (std::size_t i = 0; i < items.size(); ++i) {
      (void)engine.encode({&items[i], 1}, {&blocks[i], 1}, stream());
    }
  };
  pass();
  pass();
  const std::int64_t before = engine.replica_stats()[0].host_waits;
  pass();
  EXPECT_EQ(engine.replica_stats()[0].host_waits, before);
  for (std::size_t i = 0; i < items.size(); ++i) rooms[i].expect_rows(expected[i], *callers_);
  const EncoderCacheStats stats = engine.stats().encoder_cache;
  EXPECT_EQ(stats.misses, 48);
  EXPECT_GT(stats.host.hits, 0);
  EXPECT_GT(stats.device.evictions, 0);
}

TEST_F(DeviceCache, IsNotOverwrittenWhileASlowStreamReadsIt) {
  Engine engine = load({.encoder_device_cache_size = 64 << 10});  // a few items
  const std::vector<MediaItem> items = images(24);
  const std::vector<Embedding> expected = encode_alone(engine, items, RowDType::kFloat32);
  const std::vector<GpuRoom> rooms = rooms_for(expected, RowDType::kFloat32);
  const std::vector<RowBlock> blocks = blocks_of(rooms);
  const Buffer large = device().allocate(std::size_t{1} << 30);
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      callers_->fill_zero(large.data(), large.bytes());  // the stream falls behind
      (void)engine.encode({&items[i], 1});               // fills the cache, from other streams
      (void)engine.encode({&items[i], 1}, {&blocks[i], 1}, stream());
    }
    for (std::size_t i = 0; i < items.size(); ++i) rooms[i].expect_rows(expected[i], *callers_);
  }
  EXPECT_GT(engine.stats().encoder_cache.evictions, 0);
  EXPECT_GT(engine.stats().encoder_cache.device.hits, 0);
}

TEST_F(DeviceCache, MergesRowsAsTheHostDoes) {
  Engine engine = load();
  const MediaItem image = noise(90, 120, 1);
  const Embedding rows = engine.encode({&image, 1}, {.dtype = RowDType::kBFloat16}).front();
  constexpr std::int64_t kLevels = 3;
  const std::int64_t hidden = rows.width / (1 + kLevels);
  GatheredRows gathered;
  gathered.rows.push_back({.data = rows.data.data(),
                           .rows = rows.rows,
                           .width = rows.width,
                           .dtype = RowDType::kBFloat16});
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    gathered.is_embed.insert(gathered.is_embed.end(), static_cast<std::size_t>(row % 3), false);
    gathered.is_embed.push_back(true);
  }
  const std::int64_t positions = std::ssize(gathered.is_embed);
  const auto elements = static_cast<std::size_t>(positions * hidden);
  for (const RowDType dtype : {RowDType::kBFloat16, RowDType::kFloat32}) {
    const std::size_t bytes = elements * (dtype == RowDType::kFloat32 ? 4 : 2);
    std::vector<std::byte> expected(bytes * (1 + kLevels), std::byte{0x40});
    const auto view_of = [&](std::byte* memory) {
      return EmbeddingsView{.data = memory,
                            .positions = positions,
                            .hidden = hidden,
                            .dtype = dtype,
                            .deepstack = memory + bytes,
                            .levels = kLevels};
    };
    const Buffer source = device().allocate(rows.data.size());
    const Buffer target = device().allocate(expected.size());
    callers_->copy(source.data(), rows.data.data(), rows.data.size());
    callers_->copy(target.data(), expected.data(), expected.size());
    GatheredRows there = gathered;
    there.rows.front().data = source.data();
    const std::int64_t before = engine.replica_stats()[0].host_waits;
    engine.merge_rows(there, view_of(target.data()), stream());
    EXPECT_EQ(engine.replica_stats()[0].host_waits, before);
    merge_rows(gathered, view_of(expected.data()));
    std::vector<std::byte> got(expected.size());
    callers_->copy(got.data(), target.data(), got.size());
    callers_->synchronize();
    EXPECT_TRUE(got == expected);
  }
}

using PeerCache = test::PeerRows;

TEST_F(PeerCache, IsReadByDestinationsOnAnotherGpu) {
  Engine engine = load({.device = "cuda:0,cuda:1", .encoder_device_cache_size = kAmple});
  const std::vector<MediaItem> items = images(16);
  (void)engine.encode(items);
  for (const RowDType dtype : {RowDType::kBFloat16, RowDType::kFloat32}) {
    const std::vector<Embedding> expected = engine.encode(items, {.dtype = dtype});
    std::vector<GpuRoom> rooms;
    rooms.reserve(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      const int gpu = static_cast<int>(i % 2);
      Device& where = gpu == 0 ? device() : *other_.device;
      rooms.emplace_back(where, gpu, expected[i].rows, expected[i].width, dtype, 8);
    }
    (void)engine.encode(items, blocks_of(rooms), stream());
    for (std::size_t i = 0; i < items.size(); ++i) rooms[i].expect_rows(expected[i], *callers_);
  }
  EXPECT_EQ(engine.stats().encoder_cache.misses, 16);
}

}  // namespace
}  // namespace fovea
