#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/cuda_plugin.h"
#include "engine/backend.h"
#include "engine/rows/gpu_room.h"
#include "fovea/fovea.h"
#include "support/golden.h"

namespace fovea::test {

/// A CUstream, which is a cudaStream_t, of the current context; it lives as long as the process.
inline void* make_stream() {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  using Create = int (*)(void** stream, unsigned flags);
  const auto create =
      driver == nullptr ? nullptr : reinterpret_cast<Create>(::dlsym(driver, "cuStreamCreate"));
  void* stream = nullptr;
  constexpr unsigned kNonBlocking = 1;
  if (create == nullptr || create(&stream, kNonBlocking) != 0) return nullptr;
  return stream;
}

class DeviceRows : public ::testing::Test {
 protected:
  void SetUp() override {
    if (usable_gpus(find_cuda()).empty()) GTEST_SKIP() << cuda_status();
    backend_ = make_backend("cuda:0");
    (void)device().allocate(1);  // makes the context current
    handle_ = make_stream();
    ASSERT_NE(handle_, nullptr);
    callers_ = device().adopt_stream(0, handle_);
  }

  [[nodiscard]] Device& device() { return *backend_.device; }
  [[nodiscard]] CallerStream stream() const { return {.device = 0, .handle = handle_}; }
  [[nodiscard]] static Engine load(const EngineOptions& more = {},
                                   const std::string& family = "qwen3_vl") {
    EngineOptions options = more;
    if (options.device == "auto") options.device = "cuda:0";
    Engine engine = Engine::load(test::golden_folder(family, "golden.safetensors"), options);
    engine.warm_up();
    return engine;
  }
  [[nodiscard]] std::vector<GpuRoom> rooms_for(std::span<const Embedding> items, RowDType dtype,
                                               std::int64_t gap = 0) {
    std::vector<GpuRoom> rooms;
    for (const Embedding& item : items) {
      rooms.emplace_back(device(), 0, item.rows + 1, item.width, dtype, gap);
    }
    return rooms;
  }
  [[nodiscard]] static std::vector<RowBlock> blocks_of(std::span<const GpuRoom> rooms) {
    std::vector<RowBlock> blocks;
    for (const GpuRoom& room : rooms) blocks.push_back(room.block());
    return blocks;
  }
  /// Encodes to the host and to the GPU, with and without a stream.
  void expect_same_rows(Engine& engine, std::span<const MediaItem> items, RowDType dtype,
                        std::int64_t gap) {
    const std::vector<Embedding> expected = engine.encode(items, {.dtype = dtype});
    for (const CallerStream& with : {stream(), CallerStream{}}) {
      const std::vector<GpuRoom> rooms = rooms_for(expected, dtype, gap);
      const std::vector<Embedding> got = engine.encode(items, blocks_of(rooms), with);
      for (std::size_t i = 0; i < items.size(); ++i) {
        EXPECT_TRUE(got[i].data.empty());
        EXPECT_EQ(got[i].rows, expected[i].rows);
        EXPECT_EQ(got[i].dtype, dtype);
        rooms[i].expect_rows(expected[i], *callers_);
      }
    }
  }

  Backend backend_;
  void* handle_ = nullptr;
  std::unique_ptr<Stream> callers_;
};

/// On two GPUs.
class PeerRows : public DeviceRows {
 protected:
  void SetUp() override {
    if (usable_gpus(find_cuda()).size() < 2) GTEST_SKIP() << "needs two GPUs";
    DeviceRows::SetUp();
    other_ = make_backend("cuda:1");
  }
  Backend other_;
};

}  // namespace fovea::test
