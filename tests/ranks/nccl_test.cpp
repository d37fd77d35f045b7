// Gathers on GPUs: as many ranks as there are GPUs, threads of one process.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "ranks/thread_group.h"

namespace fovea {
namespace {

/// Device memory of a rank with a stream of its own.
class GpuMemory {
 public:
  GpuMemory(int gpu, std::size_t bytes) {
    EXPECT_EQ(cudaSetDevice(gpu), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&data_, bytes), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  ~GpuMemory() {
    (void)cudaStreamDestroy(stream_);
    (void)cudaFree(data_);
  }
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }

 private:
  void* data_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

class Nccl : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cudaGetDeviceCount(&num_gpus_) != cudaSuccess || num_gpus_ < 2)
      GTEST_SKIP() << "needs two GPUs";
  }

  /// Calls work(communicator) for a rank on each GPU.
  std::vector<std::optional<Error>> on_gpus(const std::function<void(Communicator&)>& work) {
    std::vector<std::unique_ptr<Communicator>> group = connect_threads(num_gpus_);
    std::vector<std::optional<Error>> errors(group.size());
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < group.size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          EXPECT_EQ(cudaSetDevice(static_cast<int>(rank)), cudaSuccess);
          const auto ranks = add_nccl(std::move(group[rank]));
          work(*ranks);
        } catch (const Error& error) {
          errors[rank] = error;
        }
      });
    }
    threads.clear();
    return errors;
  }

  int num_gpus_ = 0;
};

TEST_F(Nccl, GathersInTheOrderOfTheStream) {
  const auto errors = on_gpus([&](Communicator& ranks) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, std::size_t{20'000'000}}) {
      const auto size = static_cast<std::size_t>(ranks.size());
      const GpuMemory all(ranks.rank(), bytes * size);
      std::byte* const mine = all.data() + bytes * static_cast<std::size_t>(ranks.rank());
      ASSERT_EQ(cudaMemsetAsync(mine, 10 + ranks.rank(), bytes, all.stream()), cudaSuccess);
      ranks.all_gather_on_device(mine, all.data(), bytes, all.stream());
      std::vector<std::byte> host(bytes * size);
      ASSERT_EQ(cudaMemcpyAsync(host.data(), all.data(), host.size(), cudaMemcpyDeviceToHost,
                                all.stream()),
                cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(all.stream()), cudaSuccess);
      for (std::size_t i = 0; i < host.size(); ++i) {
        ASSERT_EQ(host[i], static_cast<std::byte>(10 + i / bytes)) << i;
      }
      ranks.all_gather({}, {});
    }
  });
  for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
}

TEST_F(Nccl, KeepsGathersInHostMemory) {
  (void)on_gpus([&](Communicator& ranks) {
    const int mine = ranks.rank();
    std::vector<int> all(static_cast<std::size_t>(ranks.size()));
    ranks.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    for (int rank = 0; rank < ranks.size(); ++rank)
      EXPECT_EQ(all[static_cast<std::size_t>(rank)], rank);
    ranks.all_gather({}, {});
  });
}

TEST_F(Nccl, EndsAGatherThatARankDoesNotComeTo) {
  const auto errors = on_gpus([&](Communicator& ranks) {
    const GpuMemory all(ranks.rank(), std::size_t{4096} * static_cast<std::size_t>(ranks.size()));
    ranks.all_gather({}, {});
    if (ranks.rank() == 1) ranks.abort(Error(ErrorCode::kOutOfMemory, "no memory"));
    ranks.all_gather_on_device(all.data(), all.data(), 4096, all.stream());
    (void)cudaStreamSynchronize(all.stream());  // ends with the group
    ranks.all_gather({}, {});
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_STREQ(error->what(), "rank 1: no memory");
  }
}

}  // namespace
}  // namespace fovea
