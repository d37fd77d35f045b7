// Which device a name stands for.
#include "engine/backend.h"

#include <gtest/gtest.h>

#include "core/check.h"
#include "device/cuda_plugin.h"
#include "fovea/log.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using Names = std::vector<std::string>;

/// A machine with one GPU per element, which says whether that GPU can be used.
CudaBackend machine(const std::vector<bool>& usable) {
  CudaBackend backend;
  for (const bool can : usable) {
    backend.gpus.push_back({.description = "a GPU", .unusable = can ? "" : "it is too old"});
  }
  return backend;
}

TEST(AutoDevices, TakesTheFirstGpusThatCanBeUsed) {
  EXPECT_EQ(auto_devices(machine({true}), 1), Names{"cuda:0"});
  EXPECT_EQ(auto_devices(machine({false, true, true}), 1), Names{"cuda:1"});
  EXPECT_EQ(auto_devices(machine({true, false, true, true}), 2), (Names{"cuda:0", "cuda:2"}));
}

TEST(AutoDevices, FallsBackToCpusWhereNoGpuCanBeUsed) {
  EXPECT_EQ(auto_devices(machine({}), 1), Names{"cpu"});
  EXPECT_EQ(auto_devices(machine({false, false}), 2), (Names{"cpu", "cpu"}));
}

TEST(AutoDevices, RefusesMoreReplicasThanUsableGpus) {
  test::expect_error(ErrorCode::kUnsupported,
                     "2 replicas need a GPU each, got cuda:0 a GPU; cuda:1 a GPU, cannot be used",
                     [] {
                       (void)auto_devices(machine({true, false}), 2);
                     });
}

TEST(ComputeDtype, IsThatOfTheActivationsUnlessItIsChosen) {
  EXPECT_EQ(compute_dtype({}, DType::kF32), DType::kF32);
  EXPECT_EQ(compute_dtype({}, DType::kBF16), DType::kBF16);
  EXPECT_EQ(compute_dtype({.dtype_compute = ComputeDType::kBFloat16}, DType::kF32), DType::kBF16);
}

TEST(ComputeDtype, IsBfloat16BesideInt8WhereThatIsFaster) {
  EngineOptions options{.quantization = Quantization::kInt8};
  EXPECT_EQ(compute_dtype(options, DType::kF32),
            gains_by_bf16(detect_cpu_isa()) ? DType::kBF16 : DType::kF32);
  options.dtype_compute = ComputeDType::kFloat32;
  EXPECT_EQ(compute_dtype(options, DType::kF32), DType::kF32);
}

TEST(ComputeDtype, Bfloat16IsNoFasterWithoutItsInstructions) {
  EXPECT_FALSE(gains_by_bf16(CpuIsa::kPortable));
  EXPECT_FALSE(gains_by_bf16(CpuIsa::kAvx2));
}

TEST(SmBudget, IsRefusedOnACpu) {
  test::expect_error(ErrorCode::kUnsupported, "sm_budget 64 needs a GPU",
                     [] { (void)make_backend("cpu", {.num_threads = 1, .sm_budget = 64}); });
}

class Lines final : public LogSink {
 public:
  void write(LogLevel level, std::string_view line) override {
    if (level == LogLevel::kInfo) text += cat(line, "\n");
  }
  std::string text;
};

TEST(AutoDevices, TheLogSaysWhyTheCpuIsTaken) {
  const CudaBackend cuda = find_cuda();
  if (!usable_gpus(cuda).empty()) GTEST_SKIP() << "there is a GPU";
  Lines lines;
  const Backend backend = make_backend("auto", {.num_threads = 1, .log = &lines});
  EXPECT_EQ(backend.device->properties().name, "cpu");
  EXPECT_EQ(lines.text, cat("device name=cpu gpu=none reason=\"", describe_gpus(cuda), "\"\n"));
}

}  // namespace
}  // namespace fovea
