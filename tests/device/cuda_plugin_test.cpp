// Looking for a GPU: every way to find none is a reason, and errors cross from the plugin.
#include "device/cuda_plugin.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/check.h"
#include "core/plugin/plugin.h"
#include "device/cuda_interface.h"
#include "device/device_memory.h"
#include "ops/cuda/common/compute_capability.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::test {
namespace {

/// A shared object that every Linux machine has, in place of the driver.
constexpr const char* kSomeLibrary = "libc.so.6";

TEST(CudaPlugin, WithoutADriverNothingElseIsLoaded) {
  const CudaBackend backend =
      find_cuda({.plugin_path = "/nowhere.so", .driver = "libfovea-no-such-driver.so.1"});
  EXPECT_EQ(backend.plugin, nullptr);
  EXPECT_TRUE(backend.gpus.empty());
  EXPECT_EQ(describe_gpus(backend), backend.reason);
  EXPECT_NE(backend.reason.find("driver"), std::string::npos) << backend.reason;
  EXPECT_NE(backend.reason.find("libfovea-no-such-driver.so.1"), std::string::npos)
      << backend.reason;
  EXPECT_TRUE(backend.reason.ends_with("; the GPU plugin is /nowhere.so")) << backend.reason;
}

TEST(CudaPlugin, AMissingPluginIsAReason) {
  const CudaBackend backend = find_cuda({.plugin_path = "/nowhere.so", .driver = kSomeLibrary});
  EXPECT_EQ(backend.plugin, nullptr);
  EXPECT_NE(backend.reason.find("/nowhere.so"), std::string::npos) << backend.reason;
}

TEST(CudaPlugin, AFileThatIsNoSharedObjectIsAReason) {
  const TemporaryDirectory directory;
  const std::string path = directory / "plugin.so";
  write_text(path, "not a shared object");
  const CudaBackend backend = find_cuda({.plugin_path = path, .driver = kSomeLibrary});
  EXPECT_EQ(backend.plugin, nullptr);
  EXPECT_NE(backend.reason.find(path), std::string::npos) << backend.reason;
}

TEST(CudaPlugin, ADeviceOfAnAbsentBackendSaysWhy) {
  CudaBackend backend;
  backend.reason = "it is a toaster";
  expect_error(ErrorCode::kUnsupported, "cuda:3: it is a toaster",
               [&] { (void)make_cuda_device(backend, {.index = 3}); });
}

TEST(CudaPlugin, AGpuThatDoesNotExistIsAnError) {
  CudaBackend backend;
  backend.gpus = {{.description = "one", .unusable = ""}};
  expect_error(ErrorCode::kUnsupported, "cuda:1: this machine has 1",
               [&] { (void)make_cuda_device(backend, {.index = 1}); });
  expect_error(ErrorCode::kUnsupported, "cuda:-1",
               [&] { (void)make_cuda_device(backend, {.index = -1}); });
}

struct Code {
  const char* architectures;
  std::vector<std::pair<int, int>> runs_on;  // compute capabilities
  std::vector<std::pair<int, int>> fails_on;
};

TEST(CudaPlugin, CodeRunsOnTheComputeCapabilitiesThatCudaPromises) {
  const std::vector<Code> codes{
      {"90a-real", {{9, 0}}, {{8, 0}, {8, 9}, {9, 1}, {10, 0}, {12, 0}}},
      {"80-real", {{8, 0}, {8, 6}, {8, 9}}, {{7, 5}, {9, 0}, {10, 0}}},
      {"86-real", {{8, 6}, {8, 9}}, {{8, 0}, {9, 0}}},
      {"80-virtual", {{8, 0}, {8, 9}, {9, 0}, {12, 1}}, {{7, 5}}},
      {"86", {{8, 6}, {9, 0}}, {{8, 0}}},
      {"100-real", {{10, 0}, {10, 3}}, {{9, 0}, {12, 0}}},
      {"80-real,90-real", {{8, 6}, {9, 0}}, {{7, 5}, {10, 0}}},
      {"", {}, {{9, 0}}},
      {"native", {}, {{9, 0}}},
  };
  for (const Code& code : codes) {
    for (const auto& [major, minor] : code.runs_on) {
      EXPECT_EQ(cuda::refusal_of_compute(code.architectures, major, minor), "")
          << code.architectures << " on " << major << '.' << minor;
    }
    for (const auto& [major, minor] : code.fails_on) {
      EXPECT_NE(cuda::refusal_of_compute(code.architectures, major, minor), "")
          << code.architectures << " on " << major << '.' << minor;
    }
  }
}

TEST(CudaPlugin, HopperKernelsServeHopperWhereTheBuildHasThem) {
  EXPECT_STREQ(cuda::kernels_of_compute(9, 0, true), "Hopper and portable kernels");
  EXPECT_STREQ(cuda::kernels_of_compute(9, 0, false), "portable kernels");
  EXPECT_STREQ(cuda::kernels_of_compute(8, 9, true), "portable kernels");
}

TEST(CudaPlugin, ARefusalNamesTheGpuAndTheBuild) {
  EXPECT_EQ(cuda::refusal_of_compute("80-real,90-real", 7, 5),
            "the plugin was built for the architectures 80-real,90-real; it needs one that compute "
            "7.5 runs, at least 8.0");
}

/// A machine whose GPUs 1 and 3 can be used.
CudaBackend mixed_gpus() {
  const CudaGpu good{.description = "NVIDIA H100, compute 9.0", .unusable = ""};
  const CudaGpu old{.description = "NVIDIA T4, compute 7.5", .unusable = "too old"};
  CudaBackend backend;
  backend.gpus = {old, good, old, good};
  return backend;
}

TEST(CudaPlugin, UsableGpusKeepTheirIndex) {
  EXPECT_EQ(usable_gpus(mixed_gpus()), (std::vector<int>{1, 3}));
  EXPECT_EQ(usable_gpus({}), std::vector<int>{});
}

TEST(CudaPlugin, DescribesEveryGpuAndWhyItCannotBeUsed) {
  CudaBackend backend = mixed_gpus();
  backend.gpus.resize(2);
  EXPECT_EQ(describe_gpus(backend),
            "cuda:0 NVIDIA T4, compute 7.5, cannot be used: too old; "
            "cuda:1 NVIDIA H100, compute 9.0");
}

TEST(CudaPlugin, AGpuThatCannotBeUsedIsAnErrorThatNamesThoseThatCan) {
  CudaBackend backend = mixed_gpus();
  expect_error(ErrorCode::kUnsupported,
               "cuda:2 (NVIDIA T4, compute 7.5) cannot be used: too old; GPUs that can: cuda:1, "
               "cuda:3",
               [&] { (void)make_cuda_device(backend, {.index = 2}); });
  backend.gpus.resize(1);
  expect_error(ErrorCode::kUnsupported, "too old; no GPU of this machine can",
               [&] { (void)make_cuda_device(backend, {.index = 0}); });
}

TEST(CudaPlugin, MemoryOfAGpuThatIsNotHereIsAnErrorThatNamesThoseThatAre) {
  CudaBackend backend;
  backend.reason = "it is a toaster";
  const DeviceMemoryName name{.gpu = "GPU-c"};
  expect_error(ErrorCode::kUnsupported, "memory of GPU-c cannot be mapped: it is a toaster",
               [&] { (void)map_memory(backend, name); });
  backend.gpus = {{.description = "", .unusable = "", .uuid = "GPU-a"},
                  {.description = "", .unusable = "", .uuid = "GPU-b"}};
  expect_error(ErrorCode::kUnsupported, "this process sees GPU-a, GPU-b",
               [&] { (void)map_memory(backend, name); });
}

TEST(CudaPlugin, MemoryIsMappedOnTheGpuOfItsName) {
  static int gpu = -1;
  static const CudaPlugin plugin{.list_gpus = nullptr,
                                 .create_device = nullptr,
                                 .name_memory = nullptr,
                                 .map_memory = [](int index, const DeviceMemoryName&) {
                                   gpu = index;
                                   return MappedBuffer{.memory = {}, .device = index};
                                 }};
  CudaBackend backend;
  backend.plugin = &plugin;
  backend.gpus = {{.description = "", .unusable = "", .uuid = "GPU-a"},
                  {.description = "", .unusable = "too old", .uuid = "GPU-b"}};
  EXPECT_EQ(map_memory(backend, {.gpu = "GPU-b"}).device, 1) << "no kernel of ours runs there";
  EXPECT_EQ(gpu, 1);
}

/// The plugin of this build, loaded whether or not there is a driver.
class BuiltCudaPlugin : public ::testing::Test {
 protected:
  void SetUp() override {
    backend = find_cuda({.driver = kSomeLibrary});
    if (backend.plugin == nullptr) GTEST_SKIP() << backend.reason;
  }
  CudaBackend backend;
};

TEST_F(BuiltCudaPlugin, IsFoundBesideTheTests) {
  EXPECT_EQ(std::filesystem::path(backend.plugin_path).filename(), "libfovea_cuda.so");
  EXPECT_EQ(backend.reason.empty(), !backend.gpus.empty());
}

TEST_F(BuiltCudaPlugin, RefusesHandlesOfAnotherSize) {
  expect_error(ErrorCode::kInvalidArgument, "GPU-a: expected a handle of 64 bytes, got 3", [&] {
    (void)backend.plugin->map_memory(0, {.gpu = "GPU-a", .handle = {1, 2, 3}, .bytes = 1});
  });
}

TEST_F(BuiltCudaPlugin, IsNotLoadedForAnotherInterface) {
  PluginBuild build = kCudaPluginBuild;
  EXPECT_NE(load_plugin_entry(backend.plugin_path, kCudaPluginEntry, build).function, nullptr);
  ++build.interface_number;
  EXPECT_EQ(load_plugin_entry(backend.plugin_path, kCudaPluginEntry, build).function, nullptr);
}

TEST_F(BuiltCudaPlugin, ErrorsThrownInsideArriveWithTheirCode) {
  constexpr int kNoSuchGpu = 1000;
  expect_error(ErrorCode::kDevice,
               "cuda: ", [&] { (void)backend.plugin->create_device({.index = kNoSuchGpu}); });
}

}  // namespace
}  // namespace fovea::test
