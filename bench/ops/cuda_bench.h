#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/cuda_plugin.h"
#include "fovea/tower/ops/linear.h"
#include "ops/kernels.h"

namespace fovea::bench {

/// The GPU's own counters, by NVML where the driver brings it; zeros where it does not.
class GpuMeter {
 public:
  explicit GpuMeter(int device_index);
  ~GpuMeter();
  GpuMeter(const GpuMeter&) = delete;
  GpuMeter& operator=(const GpuMeter&) = delete;

  [[nodiscard]] double joules() const;  ///< drawn since the driver was loaded
  [[nodiscard]] double sm_mhz() const;  ///< now

 private:
  struct Library;
  std::unique_ptr<const Library> library_;
};

/// What one recorded piece of work took.
struct Timing {
  double burst_ms;      ///< median of a few replays after a rest, at full clock
  double sustained_ms;  ///< mean over a loop, at the clock that the power limit allows
  double mhz;           ///< mean SM clock in that loop
  double watts;         ///< mean in that loop
  double joules;        ///< of one replay in that loop
  std::size_t nodes;    ///< of the graph
};

using Work = std::function<void(ExecContext&)>;

/// One GPU, two streams, memory for intermediates, and random operands: zeros would draw less power
/// and run faster.
class Bench {
 public:
  /// @throws Error if there is no GPU.
  explicit Bench(const CudaDeviceOptions& options);

  [[nodiscard]] Device& device() { return *device_; }
  [[nodiscard]] Tensor random(std::int64_t rows, std::int64_t cols);  ///< bf16, normal
  void fill(const Tensor& tensor);                                    ///< bf16, normal, of any size
  [[nodiscard]] Tensor floats(std::int64_t count, float value);
  [[nodiscard]] Tensor ints(const std::vector<std::int32_t>& values);
  /// Random weights of deviation 0.02 and a bias.
  [[nodiscard]] ops::PackedLinear linear(std::int64_t in, std::int64_t out,
                                         ops::WeightFormat format = ops::WeightFormat::kNative);

  /// Runs `work` once, which measures the algorithms of its GEMMs, records it and times replays.
  /// @param seconds of the sustained loop; 0: only the burst, without the rest before it.
  Timing time(const Work& work, double seconds = 0);

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Stream> side_;
  Buffer memory_;
  GpuMeter meter_;
  std::vector<std::uint16_t> random_;
  std::vector<std::uint16_t> small_;
};

/// The first GPU that can be used. @throws Error(kUnsupported) with the reason if there is none.
[[nodiscard]] CudaDeviceOptions first_gpu();

}  // namespace fovea::bench
