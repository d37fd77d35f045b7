// Patches that are on a GPU already: their rows are those of the same bytes on the host, ordered
// with the stream that writes them. Skipped without a GPU.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "engine/rows/device_rows.h"
#include "fovea/fovea.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using test::DeviceRows;
using test::GpuRoom;
using Grid = std::array<std::int64_t, 3>;

class DevicePixels : public DeviceRows {
 protected:
  /// Bytes of all frames of the patches of a grid; of an image both frames are the same.
  [[nodiscard]] static MediaItem on_host(const Grid& grid, unsigned seed) {
    std::mt19937 random(seed);
    const std::int64_t patches = grid[0] * grid[1] * grid[2];
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(patches) * kPatchDim);
    constexpr std::size_t kPlane = 16 * 16;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const bool repeats = grid[0] == 1 && i / kPlane % 2 == 1;
      bytes[i] = repeats ? bytes[i - kPlane] : static_cast<std::uint8_t>(random());
    }
    MediaItem item = pixel_bytes(std::move(bytes), patches, kPatchDim, grid, "patches");
    if (grid[0] > 1) item.modality = Modality::kVideo;
    return item;
  }
  /// The same in memory that the stream of the caller fills when it has come so far.
  [[nodiscard]] MediaItem on_gpu(const MediaItem& item) {
    const auto& pixels = std::get<PixelBytes>(item.source);
    const std::span<const std::uint8_t> bytes = pixels.patches.view();
    const auto memory = std::make_shared<const Buffer>(device().allocate(bytes.size()));
    callers_->copy(memory->data(), reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
    MediaItem there = pixel_block({.data = reinterpret_cast<const std::uint8_t*>(memory->data()),
                                   .device = 0,
                                   .stream = stream(),
                                   .num_patches = pixels.num_patches,
                                   .patch_dim = pixels.patch_dim,
                                   .grid_thw = pixels.grid_thw,
                                   .owner = memory},
                                  "patches");
    there.modality = item.modality;
    return there;
  }
  static constexpr std::int64_t kPatchDim = 3 * 2 * 16 * 16;  // of the reference data of Qwen3-VL
};

TEST_F(DevicePixels, GiveTheRowsOfTheSameBytesBehindTheirStream) {
  std::vector<MediaItem> host;
  unsigned seed = 0;
  for (const Grid& grid : {Grid{1, 8, 6}, Grid{3, 4, 4}, Grid{1, 30, 40}, Grid{1, 2, 2}}) {
    host.push_back(on_host(grid, seed++));
  }
  const Buffer large = device().allocate(std::size_t{1} << 30);
  for (const PackingPolicy packing : {PackingPolicy::kGreedy, PackingPolicy::kUnits}) {
    Engine engine = load({.packing = packing});
    for (const bool eager : {false, true}) {
      const EncodeOptions how{.enforce_eager = eager};
      const std::vector<Embedding> expected = engine.encode(host, how);
      for (int turn = 0; turn < 3; ++turn) {
        for (int i = 0; i < 20; ++i)
          callers_->fill_zero(large.data(), large.bytes());  // some 10 ms
        std::vector<MediaItem> there;
        for (const MediaItem& item : host) there.push_back(on_gpu(item));
        there[1] = host[1];  // among others
        const std::vector<Embedding> rows = engine.encode(there, how);
        for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].data, expected[i].data);
        const std::vector<GpuRoom> rooms = rooms_for(expected, RowDType::kFloat32);
        (void)engine.encode(there, blocks_of(rooms), stream(), how);
        for (std::size_t i = 0; i < rows.size(); ++i) rooms[i].expect_rows(expected[i], *callers_);
      }
    }
  }
}

TEST_F(DevicePixels, AreReadWithoutAWaitOfTheHost) {
  Engine engine = load();
  const MediaItem host = on_host({1, 8, 6}, 1);
  const Embedding expected = engine.encode({&host, 1}).front();
  const GpuRoom room(device(), 0, expected.rows, expected.width, RowDType::kFloat32);
  const MediaItem there = on_gpu(host);
  const auto run = [&] { (void)engine.encode({&there, 1}, {&room.block(), 1}, stream()); };
  for (int warm_up = 0; warm_up < 4; ++warm_up) run();
  callers_->synchronize();
  const std::int64_t before = engine.replica_stats()[0].host_waits;
  run();
  EXPECT_EQ(engine.replica_stats()[0].host_waits, before);
  room.expect_rows(expected, *callers_);
}

TEST_F(DevicePixels, OfTheHostAreRefused) {
  Engine engine = load();
  const MediaItem bytes = on_host({1, 8, 6}, 1);
  const auto& pixels = std::get<PixelBytes>(bytes.source);
  PixelBlock block{.data = pixels.patches.view().data(),
                   .num_patches = pixels.num_patches,
                   .patch_dim = kPatchDim,
                   .grid_thw = pixels.grid_thw};
  const auto expect = [&](const std::string& text) {
    const MediaItem item = pixel_block(block, "patches");
    test::expect_error(ErrorCode::kInvalidArgument, text, [&] { (void)engine.encode({&item, 1}); });
  };
  expect("patches: an engine on cuda:0 takes patches in host memory as pixel_bytes()");
  block.device = 0;
  expect("patches: is not memory of cuda:0, as it says");
}

}  // namespace
}  // namespace fovea
