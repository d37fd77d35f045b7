#include "ops/cuda_bench.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

#include "core/check.h"

namespace fovea::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kRandomValues = std::int64_t{16384} * 3 * 1152;
constexpr std::int64_t kWeightValues = std::int64_t{4608} * 4608;
constexpr std::size_t kArenaBytes = std::size_t{2} << 30;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The sum of four 16-bit numbers, with mean 0 and deviation 1: sixty million of a true normal
/// distribution would take seconds.
float nearly_normal(std::uint64_t bits) {
  constexpr float kMean = 2 * 65535.0f;
  constexpr float kDeviation = 37837.0f;  // 65536 / sqrt(3)
  std::int64_t sum = 0;
  for (; bits != 0; bits >>= 16) sum += static_cast<std::int64_t>(bits & 0xffff);
  return (static_cast<float>(sum) - kMean) / kDeviation;
}

template <class Value>
ConstTensorView host_view(const std::vector<Value>& values, DType dtype, const Shape& shape) {
  return {reinterpret_cast<const std::byte*>(values.data()), dtype, shape};
}

}  // namespace

/// The functions of NVML that are needed, with the types of its C interface.
/// Source: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
struct GpuMeter::Library {
  void* handle;
  void* gpu;
  int (*energy)(void* gpu, unsigned long long* millijoules);
  int (*clock)(void* gpu, int kind, unsigned* mhz);
};

GpuMeter::GpuMeter(int device_index) {
  void* const handle = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (handle == nullptr) return;
  const auto init = reinterpret_cast<int (*)()>(dlsym(handle, "nvmlInit_v2"));
  const auto find =
      reinterpret_cast<int (*)(unsigned, void**)>(dlsym(handle, "nvmlDeviceGetHandleByIndex_v2"));
  Library library{
      handle, nullptr,
      reinterpret_cast<decltype(Library::energy)>(
          dlsym(handle, "nvmlDeviceGetTotalEnergyConsumption")),
      reinterpret_cast<decltype(Library::clock)>(dlsym(handle, "nvmlDeviceGetClockInfo"))};
  const bool is_usable = init != nullptr && find != nullptr && library.energy != nullptr &&
                         library.clock != nullptr && init() == 0 &&
                         find(static_cast<unsigned>(device_index), &library.gpu) == 0;
  if (is_usable) library_ = std::make_unique<const Library>(library);
}

GpuMeter::~GpuMeter() = default;

double GpuMeter::joules() const {
  unsigned long long millijoules = 0;
  if (library_) (void)library_->energy(library_->gpu, &millijoules);
  return static_cast<double>(millijoules) * 1e-3;
}

double GpuMeter::sm_mhz() const {
  constexpr int kSmClock = 1;
  unsigned mhz = 0;
  if (library_) (void)library_->clock(library_->gpu, kSmClock, &mhz);
  return mhz;
}

CudaDeviceOptions first_gpu() {
  const CudaBackend backend = find_cuda();
  const std::vector<int> gpus = usable_gpus(backend);
  FOVEA_CHECK(!gpus.empty(), kUnsupported, "no GPU: ", describe_gpus(backend));
  std::printf("%s\n", backend.gpus[static_cast<std::size_t>(gpus.front())].description.c_str());
  return {.index = gpus.front()};
}

Bench::Bench(const CudaDeviceOptions& options)
    : device_(make_cuda_device(find_cuda(), options)),
      stream_(device_->create_stream()),
      side_(device_->create_stream()),
      memory_(device_->allocate(kArenaBytes)),
      meter_(options.index),
      random_(static_cast<std::size_t>(kRandomValues)),
      small_(static_cast<std::size_t>(kWeightValues)) {
  std::mt19937_64 generator(1);
  for (auto& bits : random_) bits = f32_to_bf16(nearly_normal(generator()));
  for (std::size_t i = 0; i < small_.size(); ++i)
    small_[i] = f32_to_bf16(0.02f * bf16_to_f32(random_[i]));
}

Tensor Bench::random(std::int64_t rows, std::int64_t cols) {
  FOVEA_CHECK(rows * cols <= kRandomValues, kInvalidArgument, "more random values than there are");
  return upload(*device_, *stream_, host_view(random_, DType::kBF16, {rows, cols}));
}

void Bench::fill(const Tensor& tensor) {
  const auto* const values = reinterpret_cast<const std::byte*>(random_.data());
  const std::size_t bytes = tensor.buffer.bytes();
  const std::size_t most = random_.size() * sizeof(random_[0]);
  for (std::size_t at = 0; at < bytes; at += most)
    stream_->copy(tensor.buffer.data() + at, values, std::min(most, bytes - at));
  stream_->synchronize();
}

Tensor Bench::floats(std::int64_t count, float value) {
  const std::vector<float> values(static_cast<std::size_t>(count), value);
  return upload(*device_, *stream_, host_view(values, DType::kF32, {count}));
}

Tensor Bench::ints(const std::vector<std::int32_t>& values) {
  return upload(*device_, *stream_,
                host_view(values, DType::kI32, {static_cast<std::int64_t>(values.size())}));
}

ops::PackedLinear Bench::linear(std::int64_t in, std::int64_t out, ops::WeightFormat format) {
  return ops::pack_linear(*device_, host_view(small_, DType::kBF16, {out, in}),
                          host_view(small_, DType::kBF16, {out}), format);
}

Timing Bench::time(const Work& work, double seconds) {
  constexpr int kBurst = 9;
  constexpr std::chrono::milliseconds kRest{300};
  constexpr double kQueuedMs = 100;
  Arena arena(memory_.data(), memory_.bytes());
  ExecContext ctx{.stream = *stream_,
                  .kernels = device_->kernels(),
                  .arena = arena,
                  .side = *side_,
                  .is_recorded = true};
  work(ctx);
  stream_->synchronize();
  const auto graph = stream_->capture([&] { work(ctx); });
  const auto replay_ms = [&](int replays) {
    const auto begin = Clock::now();
    for (int i = 0; i < replays; ++i) stream_->replay(*graph);
    stream_->synchronize();
    return seconds_since(begin) * 1e3 / replays;
  };
  (void)replay_ms(2);
  if (seconds > 0) std::this_thread::sleep_for(kRest);
  std::vector<double> times;
  for (int i = 0; i < kBurst; ++i) times.push_back(replay_ms(1));
  std::ranges::nth_element(times, times.begin() + kBurst / 2);
  Timing timing{.burst_ms = times[kBurst / 2], .nodes = graph->num_nodes()};
  if (seconds <= 0) return timing;

  const int queued = std::max(1, static_cast<int>(kQueuedMs / timing.burst_ms));
  (void)replay_ms(queued);  // the power limit takes its time
  const double joules = meter_.joules();
  const auto begin = Clock::now();
  int replays = 0;
  double mhz = 0;
  int samples = 0;
  while (seconds_since(begin) < seconds) {
    for (int i = 0; i < queued; ++i) stream_->replay(*graph);
    mhz += meter_.sm_mhz();  // while they run
    stream_->synchronize();
    replays += queued;
    ++samples;
  }
  const double took = seconds_since(begin);
  const double drawn = meter_.joules() - joules;
  timing.sustained_ms = took * 1e3 / replays;
  timing.mhz = mhz / samples;
  timing.watts = drawn / took;
  timing.joules = drawn / replays;
  return timing;
}

}  // namespace fovea::bench
