// Rows that stay on a GPU: those of the host, ordered with a stream of the caller, without a wait
// of the host. Skipped without a GPU.
#include <dlpack/dlpack.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "engine/cached/noise.h"
#include "engine/rows/device_rows.h"
#include "engine/rows/gpu_room.h"
#include "fovea/dlpack.h"
#include "fovea/fovea.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using test::DeviceRows;
using test::GpuRoom;
using test::make_stream;
using test::noise;
using test::PeerRows;

TEST_F(DeviceRows, EqualThoseOfTheHostInEveryDtypeAndStride) {
  for (const char* const family : {"qwen3_vl", "deepseek_ocr", "step3_vl", "llama4"}) {
    SCOPED_TRACE(family);
    Engine engine = load({}, family);
    const std::vector<MediaItem> items{noise(90, 120, 1), noise(64, 64, 2), noise(700, 300, 3)};
    expect_same_rows(engine, items, RowDType::kBFloat16, 0);
    expect_same_rows(engine, items, RowDType::kBFloat16, 6);
    expect_same_rows(engine, items, RowDType::kFloat32, 0);
    expect_same_rows(engine, items, RowDType::kFloat32, 16);
    expect_same_rows(engine, items, RowDType::kFloat16, 2);
  }
}

TEST_F(DeviceRows, AreThoseOfLongCallsToo) {
  Engine engine = load();
  constexpr int kCount = 120;
  std::vector<MediaItem> items;
  items.reserve(kCount);
  for (int i = 0; i < kCount; ++i) items.push_back(noise(32 + 32 * (i % 5), 96, 4));
  expect_same_rows(engine, items, RowDType::kFloat32, 0);
}

TEST_F(DeviceRows, AreReturnedWithoutAWaitOfTheHost) {
  Engine engine = load();
  const std::vector<MediaItem> items{noise(90, 120, 1), noise(64, 64, 2)};
  for (const bool eager : {false, true}) {
    SCOPED_TRACE(eager ? "eager" : "graphs");
    const EncodeOptions how{.enforce_eager = eager};
    const std::vector<Embedding> expected = engine.encode(items, how);
    const std::vector<GpuRoom> rooms = rooms_for(expected, RowDType::kFloat32);
    for (int warm_up = 0; warm_up < 4; ++warm_up) {
      (void)engine.encode(items, blocks_of(rooms), stream(), how);
      callers_->synchronize();
    }
    const std::int64_t before = engine.replica_stats()[0].host_waits;
    (void)engine.encode(items, blocks_of(rooms), stream(), how);
    EXPECT_EQ(engine.replica_stats()[0].host_waits, before);
    for (std::size_t i = 0; i < items.size(); ++i) rooms[i].expect_rows(expected[i], *callers_);
    (void)engine.encode(items, how);
    EXPECT_GT(engine.replica_stats()[0].host_waits, before) << "rows to the host are waited for";
  }
}

TEST_F(DeviceRows, AreWrittenBehindWhatTheStreamHolds) {
  Engine engine = load();
  const MediaItem item = noise(90, 120, 1);
  const Embedding expected = engine.encode({&item, 1}).front();
  const GpuRoom room(device(), 0, expected.rows, expected.width, RowDType::kFloat32);
  const Buffer large = device().allocate(std::size_t{1} << 30);
  for (int turn = 0; turn < 5; ++turn) {
    for (int i = 0; i < 20; ++i) callers_->fill_zero(large.data(), large.bytes());  // some 10 ms
    callers_->fill_zero(static_cast<std::byte*>(room.block().data), 4096);
    (void)engine.encode({&item, 1}, {&room.block(), 1}, stream());
    room.expect_rows(expected, *callers_);
  }
}

TEST_F(DeviceRows, OfManyCallsInFlightAreNotMixedUp) {
  Engine engine = load();
  std::vector<MediaItem> items;
  for (unsigned seed = 0; seed < 24; ++seed) {
    items.push_back(noise(64 + 32 * (seed % 4), 96, seed));
  }
  const std::vector<Embedding> expected = engine.encode(items);
  const std::vector<GpuRoom> rooms = rooms_for(expected, RowDType::kFloat32);
  const std::vector<RowBlock> blocks = blocks_of(rooms);
  const Buffer large = device().allocate(std::size_t{1} << 30);
  for (std::size_t i = 0; i < items.size(); ++i) {
    callers_->fill_zero(large.data(), large.bytes());  // the stream falls behind
    (void)engine.encode({&items[i], 1}, {&blocks[i], 1}, stream());
    if (i % 5 == 4) (void)engine.encode({&items[0], 1});  // takes the same memory, to the host
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Embedding alone = engine.encode({&items[i], 1}).front();
    rooms[i].expect_rows(alone, *callers_);
  }
}

TEST_F(DeviceRows, OfSeveralThreadsWithStreamsOfTheirOwn) {
  Engine engine = load();
  const std::vector<MediaItem> items{noise(90, 120, 1), noise(64, 64, 2)};
  const std::vector<Embedding> expected = engine.encode(items, {.dtype = RowDType::kBFloat16});
  std::vector<std::vector<GpuRoom>> rooms;
  std::vector<void*> handles;
  for (int i = 0; i < 4; ++i) {
    rooms.push_back(rooms_for(expected, RowDType::kBFloat16));
    handles.push_back(make_stream());
  }
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      threads.emplace_back([&, i] {
        for (int turn = 0; turn < 20; ++turn) {
          (void)engine.encode(items, blocks_of(rooms[i]), {.device = 0, .handle = handles[i]});
        }
      });
    }
  }
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    const std::unique_ptr<Stream> mine = device().adopt_stream(0, handles[i]);
    for (std::size_t k = 0; k < items.size(); ++k) rooms[i][k].expect_rows(expected[k], *mine);
  }
}

TEST_F(DeviceRows, ComeFromTheCacheAndFromPrunedVideos) {
  Engine cached = load({.encoder_cache_bytes = std::int64_t{64} << 20});
  const std::vector<MediaItem> items{noise(90, 120, 1), noise(64, 64, 2), noise(90, 120, 1)};
  expect_same_rows(cached, items, RowDType::kBFloat16, 8);
  Engine pruning = load({.video_pruning_rate = 0.5});
  MediaItem video = noise(64, 64 * 6, 3);
  video.modality = Modality::kVideo;
  auto& rgb = std::get<RgbFrames>(video.source);
  rgb.num_frames = 6;
  rgb.height_px = 64;
  expect_same_rows(pruning, std::vector{video, items[0]}, RowDType::kFloat32, 0);
}

TEST_F(DeviceRows, MayShareACallWithRowsOnTheHost) {
  Engine engine = load();
  const std::vector<MediaItem> items{noise(90, 120, 1), noise(64, 64, 2), noise(96, 64, 3)};
  const std::vector<Embedding> expected = engine.encode(items);
  const std::vector<GpuRoom> rooms = rooms_for(expected, RowDType::kFloat32);
  std::vector<RowBlock> blocks = blocks_of(rooms);
  std::vector<float> here(static_cast<std::size_t>(expected[1].rows * expected[1].width));
  blocks[1] = {.data = here.data(), .rows = expected[1].rows};
  (void)engine.encode(items, blocks, stream());
  EXPECT_EQ(std::memcmp(here.data(), expected[1].data.data(), expected[1].data.size()), 0);
  rooms[0].expect_rows(expected[0], *callers_);
  rooms[2].expect_rows(expected[2], *callers_);
}

TEST_F(DeviceRows, MayComeWithTheCall) {
  Engine engine = load();
  const MediaItem image = noise(90, 120, 1);
  for (const RowDType from : {RowDType::kBFloat16, RowDType::kFloat32}) {
    const Embedding known = engine.encode({&image, 1}, {.dtype = from}).front();
    const GpuRoom source(device(), 0, known.rows, known.width, from, 32);
    (void)engine.encode({&image, 1}, {&source.block(), 1}, stream());
    const std::vector<MediaItem> items{precomputed_rows(source.block(), known.width, "known"),
                                       image};
    for (const RowDType to : {RowDType::kBFloat16, RowDType::kFloat32, RowDType::kFloat16}) {
      const Embedding converted =
          engine.encode(std::vector{precomputed(known)}, {.dtype = to}).front();
      const std::vector<GpuRoom> rooms = rooms_for(std::vector{known, known}, to, 4);
      (void)engine.encode(items, blocks_of(rooms), stream());
      rooms[0].expect_rows(converted, *callers_);
      callers_->synchronize();
      EXPECT_EQ(engine.encode({&items[0], 1}, {.dtype = to}).front().data, converted.data);
    }
  }
}

TEST_F(DeviceRows, OfATensorOfDLPack) {
  Engine engine = load();
  const MediaItem image = noise(90, 120, 1);
  const Embedding expected = engine.encode({&image, 1}, {.dtype = RowDType::kBFloat16}).front();
  const GpuRoom room(device(), 0, expected.rows, expected.width, RowDType::kBFloat16, 16);
  DLManagedTensor* const tensor = to_dlpack(room.block(), expected.width, nullptr);
  const RowBlock block = row_block(*tensor, expected.width);  // refers to the room
  tensor->deleter(tensor);
  EXPECT_EQ(block.device, 0);
  (void)engine.encode({&image, 1}, {&block, 1}, stream());
  room.expect_rows(expected, *callers_);
}

TEST_F(DeviceRows, NeedMemoryThatIsWhereItSays) {
  Engine engine = load();
  const MediaItem image = noise(64, 64, 1);
  const std::int64_t width = engine.report().width;
  std::vector<float> here(static_cast<std::size_t>(4 * width));
  const GpuRoom room(device(), 0, 4, width, RowDType::kFloat32);
  const auto refused = [&](RowBlock block, int device, const std::string& part) {
    block.device = device;
    test::expect_error(ErrorCode::kInvalidArgument, part, [&] {
      (void)engine.encode({&image, 1}, {&block, 1}, stream());
    });
  };
  refused({.data = here.data(), .rows = 4}, 0, "is not memory of cuda:0, as it says");
  refused(room.block(), RowBlock::kHost, "is not host memory, as it says");
  refused(room.block(), 1, "is not memory of cuda:1, as it says");
  test::expect_error(ErrorCode::kInvalidArgument, "a stream of cuda:99", [&] {
    (void)engine.encode({&image, 1}, {&room.block(), 1}, {.device = 99});
  });
}

TEST_F(PeerRows, GoToAnotherGpuThanTheTowers) {
  Engine engine = load();  // on cuda:0
  const std::vector<MediaItem> items{noise(90, 120, 1), noise(64, 64, 2)};
  for (const RowDType dtype : {RowDType::kBFloat16, RowDType::kFloat32}) {
    const std::vector<Embedding> expected = engine.encode(items, {.dtype = dtype});
    std::vector<GpuRoom> rooms;
    rooms.reserve(expected.size());
    for (const Embedding& item : expected) {
      rooms.emplace_back(*other_.device, 1, item.rows, item.width, dtype, 8);
    }
    (void)engine.encode(items, blocks_of(rooms), stream());
    for (std::size_t i = 0; i < items.size(); ++i) rooms[i].expect_rows(expected[i], *callers_);
  }
}

TEST_F(PeerRows, OfReplicasMeetOnOneStream) {
  Engine engine = load({.device = "cuda:0,cuda:1"});
  std::vector<MediaItem> items;
  for (unsigned seed = 0; seed < 40; ++seed) items.push_back(noise(64, 64 + 32 * (seed % 3), seed));
  expect_same_rows(engine, items, RowDType::kBFloat16, 0);
  expect_same_rows(engine, items, RowDType::kFloat32, 4);
}

}  // namespace
}  // namespace fovea
