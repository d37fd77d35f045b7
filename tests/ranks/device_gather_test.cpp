// Rows of several ranks that stay on their GPUs: those that pass through the host, without a wait
// of the host. As many ranks as there are GPUs, threads of one process; skipped with less than two.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "core/check.h"
#include "engine/backend.h"
#include "engine/rows/gpu_room.h"
#include "fovea/encode_on_ranks.h"
#include "ranks/mixed_items.h"
#include "ranks/thread_group.h"
#include "support/golden.h"

namespace fovea {
namespace {

using test::GpuRoom;

/// What a rank has: an engine on its GPU, and streams of a caller.
class GpuRank {
 public:
  GpuRank(Communicator& ranks, const std::string& family)
      : gpu_(ranks.rank()),
        backend_(make_backend(cat("cuda:", gpu_))),
        engine_(Engine::load(test::golden_folder(family, "golden.safetensors"),
                             {.device = cat("cuda:", gpu_)})) {
    engine_.warm_up();
    for (cudaStream_t& stream : streams_) {
      EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    }
  }
  ~GpuRank() {
    for (cudaStream_t& stream : streams_) (void)cudaStreamDestroy(stream);
  }
  GpuRank(const GpuRank&) = delete;
  GpuRank& operator=(const GpuRank&) = delete;

  [[nodiscard]] Engine& engine() { return engine_; }
  [[nodiscard]] CallerStream stream(std::size_t number = 0) const {
    return {.device = gpu_, .handle = streams_[number]};
  }
  [[nodiscard]] std::unique_ptr<Stream> adopted(std::size_t number = 0) {
    return backend_.device->adopt_stream(gpu_, streams_[number]);
  }
  [[nodiscard]] std::vector<GpuRoom> rooms_for(std::span<const Embedding> items, RowDType dtype,
                                               std::int64_t gap = 0) {
    std::vector<GpuRoom> rooms;
    for (const Embedding& item : items) {
      rooms.emplace_back(*backend_.device, gpu_, item.rows + 1, item.width, dtype, gap);
    }
    return rooms;
  }
  [[nodiscard]] static std::vector<RowBlock> blocks_of(std::span<const GpuRoom> rooms) {
    std::vector<RowBlock> blocks;
    for (const GpuRoom& room : rooms) blocks.push_back(room.block());
    return blocks;
  }
  static void expect_rows(std::span<const GpuRoom> rooms, std::span<const Embedding> expected,
                          Stream& stream) {
    for (std::size_t i = 0; i < rooms.size(); ++i) rooms[i].expect_rows(expected[i], stream);
  }

 private:
  int gpu_;
  Backend backend_;
  Engine engine_;
  std::array<cudaStream_t, 2> streams_{};
};

class DeviceGather : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cudaGetDeviceCount(&num_gpus_) != cudaSuccess || num_gpus_ < 2)
      GTEST_SKIP() << "needs two GPUs";
  }

  /// Calls work(communicator) for a rank on each GPU, and expects no failure.
  void on_gpus(const std::function<void(Communicator&)>& work) const {
    std::vector<std::unique_ptr<Communicator>> group = connect_threads(num_gpus_);
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < group.size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          EXPECT_EQ(cudaSetDevice(static_cast<int>(rank)), cudaSuccess);
          const auto ranks = add_nccl(std::move(group[rank]));
          EXPECT_EQ(ranks->gather_device(), static_cast<int>(rank));
          work(*ranks);
          EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
          ranks->all_gather({}, {});
        } catch (const Error& error) {
          ADD_FAILURE() << error.what();
        }
      });
    }
    threads.clear();
  }

  int num_gpus_ = 0;
};

TEST_F(DeviceGather, GivesTheRowsOfTheHostInEveryDtypeAndStride) {
  for (const char* const family : {"qwen3_vl", "deepseek_ocr", "llama4"}) {
    SCOPED_TRACE(family);
    on_gpus([&](Communicator& ranks) {
      GpuRank rank(ranks, family);
      for (const std::size_t count : {1, 9}) {
        const auto items = test::mixed_items(rank.engine().report(), 5, count);
        for (const auto& [dtype, gap] : {std::pair{RowDType::kBFloat16, std::int64_t{0}},
                                         {RowDType::kBFloat16, std::int64_t{6}},
                                         {RowDType::kFloat32, std::int64_t{16}}}) {
          const auto expected =
              encode_on_ranks(rank.engine(), ranks, items, EncodeOptions{.dtype = dtype});
          const auto rooms = rank.rooms_for(expected, dtype, gap);
          for (const CallerStream& stream : {rank.stream(), CallerStream{}}) {
            const auto got =
                encode_on_ranks(rank.engine(), ranks, items, GpuRank::blocks_of(rooms), stream);
            ASSERT_EQ(got.size(), items.size());
            EXPECT_EQ(got.back().rows, expected.back().rows);
            GpuRank::expect_rows(rooms, expected, *rank.adopted());
          }
        }
      }
    });
  }
}

TEST_F(DeviceGather, ReturnsWithoutAWaitOfTheHost) {
  on_gpus([&](Communicator& ranks) {
    GpuRank rank(ranks, "qwen3_vl");
    const auto items = test::mixed_items(rank.engine().report(), 5, 8);
    for (const bool eager : {false, true}) {
      const EncodeOptions how{.enforce_eager = eager};
      const auto expected = encode_on_ranks(rank.engine(), ranks, items, how);
      const auto rooms = rank.rooms_for(expected, RowDType::kFloat32);
      const auto blocks = GpuRank::blocks_of(rooms);
      const auto stream = rank.adopted();
      for (int warm_up = 0; warm_up < 4; ++warm_up) {
        (void)encode_on_ranks(rank.engine(), ranks, items, blocks, rank.stream(), how);
        stream->synchronize();
      }
      const std::int64_t before = rank.engine().replica_stats()[0].host_waits;
      (void)encode_on_ranks(rank.engine(), ranks, items, blocks, rank.stream(), how);
      EXPECT_EQ(rank.engine().replica_stats()[0].host_waits, before) << eager;
      GpuRank::expect_rows(rooms, expected, *stream);
    }
  });
}

TEST_F(DeviceGather, OrdersCallsOnTwoStreams) {
  on_gpus([&](Communicator& ranks) {
    GpuRank rank(ranks, "qwen3_vl");
    constexpr int kRounds = 20;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<std::vector<Embedding>> expected;
      std::vector<std::vector<GpuRoom>> rooms;
      std::vector<std::vector<MediaItem>> items;
      for (const unsigned seed : {1U, 2U}) {
        items.push_back(test::mixed_items(rank.engine().report(), seed, 7));
        expected.push_back(encode_on_ranks(rank.engine(), ranks, items.back()));
        rooms.push_back(rank.rooms_for(expected.back(), RowDType::kFloat32));
      }
      for (const std::size_t call : {0, 1}) {
        (void)encode_on_ranks(rank.engine(), ranks, items[call], GpuRank::blocks_of(rooms[call]),
                              rank.stream(call));
      }
      for (const std::size_t call : {0, 1}) {
        GpuRank::expect_rows(rooms[call], expected[call], *rank.adopted(call));
      }
    }
  });
}

TEST_F(DeviceGather, GoesOnAfterABadItem) {
  on_gpus([&](Communicator& ranks) {
    GpuRank rank(ranks, "qwen3_vl");
    auto items = test::mixed_items(rank.engine().report(), 5, 6);
    items.push_back(image_file("missing.jpg"));
    const EncodeOptions skip{.on_error = OnError::kSkip};
    // With the bad item, which changes who encodes what, and on GPUs so the bits.
    const auto expected = encode_on_ranks(rank.engine(), ranks, items, skip);
    const std::span good = std::span(expected).first(expected.size() - 1);
    const auto rooms = rank.rooms_for(good, RowDType::kFloat32);
    auto blocks = GpuRank::blocks_of(rooms);
    blocks.push_back({});
    EXPECT_THROW((void)encode_on_ranks(rank.engine(), ranks, items, blocks, rank.stream()), Error);
    const auto got = encode_on_ranks(rank.engine(), ranks, items, blocks, rank.stream(), skip);
    EXPECT_TRUE(got.back().error);
    GpuRank::expect_rows(rooms, good, *rank.adopted());
  });
}

// Destinations of one rank elsewhere: rows of all pass through the host.
TEST_F(DeviceGather, FillsBlocksOfTheHostAndOfGpus) {
  on_gpus([&](Communicator& ranks) {
    GpuRank rank(ranks, "qwen3_vl");
    const auto items = test::mixed_items(rank.engine().report(), 5, 6);
    const auto expected = encode_on_ranks(rank.engine(), ranks, items);
    const auto rooms = rank.rooms_for(expected, RowDType::kFloat32);
    auto blocks = GpuRank::blocks_of(rooms);
    const std::size_t row_bytes = static_cast<std::size_t>(expected[2].width) * sizeof(float);
    std::vector<std::byte> host(expected[2].data.size() + row_bytes);
    if (ranks.rank() == 1) blocks[2] = {.data = host.data(), .rows = expected[2].rows + 1};
    (void)encode_on_ranks(rank.engine(), ranks, items, blocks, rank.stream());
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (ranks.rank() != 1 || i != 2) rooms[i].expect_rows(expected[i], *rank.adopted());
    }
    if (ranks.rank() == 1) {
      host.resize(expected[2].data.size());
      EXPECT_TRUE(std::ranges::equal(host, expected[2].data));
    }
  });
}

}  // namespace
}  // namespace fovea
