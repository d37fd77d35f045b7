// Looking for a GPU: every way to find none is a reason, and errors cross from the plugin.
#include "device/cuda_plugin.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/check.h"
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
  EXPECT_TRUE(backend.devices.empty());
  EXPECT_NE(backend.reason.find("driver"), std::string::npos) << backend.reason;
  EXPECT_NE(backend.reason.find("libfovea-no-such-driver.so.1"), std::string::npos)
      << backend.reason;
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

TEST(CudaPlugin, ASharedObjectWithoutTheEntryIsAReason) {
  const CudaBackend backend = find_cuda({.plugin_path = "libm.so.6", .driver = kSomeLibrary});
  EXPECT_EQ(backend.plugin, nullptr);
  EXPECT_NE(backend.reason.find(kCudaPluginEntry), std::string::npos) << backend.reason;
}

TEST(CudaPlugin, ADeviceOfAnAbsentBackendSaysWhy) {
  CudaBackend backend;
  backend.reason = "it is a toaster";
  expect_error(ErrorCode::kUnsupported, "cuda:3: it is a toaster",
               [&] { (void)make_cuda_device(backend, {.index = 3}); });
}

TEST(CudaPlugin, AGpuThatDoesNotExistIsAnError) {
  CudaBackend backend;
  backend.devices = {"one"};
  expect_error(ErrorCode::kUnsupported, "cuda:1: this machine has 1",
               [&] { (void)make_cuda_device(backend, {.index = 1}); });
  expect_error(ErrorCode::kUnsupported, "cuda:-1",
               [&] { (void)make_cuda_device(backend, {.index = -1}); });
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
  EXPECT_EQ(backend.plugin->interface_number, kCudaPluginInterface);
  EXPECT_EQ(backend.reason.empty(), !backend.devices.empty());
}

TEST_F(BuiltCudaPlugin, ErrorsThrownInsideArriveWithTheirCode) {
  constexpr int kNoSuchGpu = 1000;
  expect_error(ErrorCode::kUnsupported, "cuda:1000",
               [&] { (void)backend.plugin->create_device({.index = kNoSuchGpu}); });
}

}  // namespace
}  // namespace fovea::test
