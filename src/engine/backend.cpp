// Choosing a device by name.
#include "engine/backend.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/check.h"
#include "core/thread_pool.h"
#include "device/cpu/cpu_device.h"
#include "device/cuda_plugin.h"
#include "fovea/log.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea {

namespace {

/// More than any machine has GPUs; each replica has threads of its own.
constexpr int kMaxReplicas = 64;

Backend make_cpu(const EngineOptions& options) {
  FOVEA_CHECK(options.sm_budget == 0, kUnsupported, "sm_budget ", options.sm_budget,
              " needs a GPU, a CPU has no SMs; use --device cuda or leave out --sm-budget");
  const DType compute = compute_dtype(options, DType::kF32);
  Backend backend;
  backend.kernels = make_cpu_kernels(detect_cpu_isa(), options.num_threads, compute);
  backend.device = make_cpu_device(options.num_threads, *backend.kernels);
  return backend;
}

/// The index in "cuda" (0) or "cuda:<index>". @throws Error(kInvalidArgument) for other names.
int cuda_index(const std::string& name) {
  constexpr std::string_view kPrefix = "cuda:";
  if (name == "cuda") return 0;
  std::string_view digits;
  if (name.starts_with(kPrefix)) digits = std::string_view(name).substr(kPrefix.size());
  int index = -1;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  FOVEA_CHECK(failure == std::errc{} && end == digits.data() + digits.size() && index >= 0,
              kInvalidArgument, "device must be auto, cpu, cuda or cuda:<index>, got \"", name,
              "\"");
  return index;
}

bool is_cuda(const std::string& name) { return name == "cuda" || name.starts_with("cuda:"); }

/// auto_devices on this machine. For the CPU a line of the log says why.
std::vector<std::string> choose_devices(std::size_t count, LogSink* log) {
  const CudaBackend cuda = find_cuda();
  if (usable_gpus(cuda).empty()) {
    log_to(log, LogLevel::kInfo,
           cat("device name=cpu gpu=none reason=\"", describe_gpus(cuda), "\""));
  }
  return auto_devices(cuda, count);
}

CudaAttention to_cuda(AttentionBackend attention) {
  switch (attention) {
    case AttentionBackend::kAuto: return CudaAttention::kAuto;
    case AttentionBackend::kPortable: return CudaAttention::kPortable;
    case AttentionBackend::kHopper: return CudaAttention::kHopper;
    case AttentionBackend::kCudnn:
    case AttentionBackend::kCudnnOrAuto: return CudaAttention::kCudnn;
  }
  return CudaAttention::kAuto;
}

CudaWait to_cuda(GpuWait wait) {
  switch (wait) {
    case GpuWait::kAuto: return CudaWait::kAuto;
    case GpuWait::kSpin: return CudaWait::kSpin;
    case GpuWait::kSleep: return CudaWait::kSleep;
  }
  return CudaWait::kAuto;
}

/// The parts between commas.
std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts{""};
  for (const char c : list) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace

Backend make_backend(const std::string& name, const EngineOptions& options) {
  if (name == "auto") return make_backend(choose_devices(1, options.log).front(), options);
  if (name == "cpu") return make_cpu(options);
  const int index = cuda_index(name);
  FOVEA_CHECK(options.dtype_compute != ComputeDType::kFloat32, kUnsupported,
              "dtype_compute float32 needs a CPU, device ", name,
              " computes in bfloat16; use --device cpu or another --dtype-compute");
  const CudaBackend cuda = find_cuda();
  FOVEA_CHECK(!cuda.gpus.empty(), kUnsupported, "device ", name, " cannot be used: ", cuda.reason,
              "; use --device cpu");
  CudaDeviceOptions device{.index = index,
                           .attention = to_cuda(options.attention),
                           .wait = to_cuda(options.gpu_wait),
                           .sm_budget = options.sm_budget,
                           .cache_dir = options.cache_dir};
  try {
    return {nullptr, make_cuda_device(cuda, device)};
  } catch (const Error& error) {
    const bool may_fall_back = options.attention == AttentionBackend::kCudnnOrAuto;
    if (!may_fall_back || error.code() != ErrorCode::kUnsupported) throw;
    log_to(options.log, LogLevel::kWarning,
           cat("attention.fallback wanted=cudnn used=auto device=", name, " reason=\"",
               error.what(), "\""));
  }
  device.attention = CudaAttention::kAuto;
  return {nullptr, make_cuda_device(cuda, device)};
}

std::vector<std::string> auto_devices(const CudaBackend& cuda, std::size_t count) {
  std::vector<std::string> names(count, "cpu");
  const std::vector<int> gpus = usable_gpus(cuda);
  if (gpus.empty()) return names;
  FOVEA_CHECK(count <= gpus.size(), kUnsupported, "device auto: ", count,
              " replicas need a GPU each, got ", describe_gpus(cuda));
  for (std::size_t i = 0; i < count; ++i) names[i] = cat("cuda:", gpus[i]);
  return names;
}

std::vector<std::string> replica_devices(const EngineOptions& options) {
  std::vector<std::string> names = split(options.device);
  FOVEA_CHECK(options.data_parallel_size >= 0 && options.data_parallel_size <= kMaxReplicas &&
                  names.size() <= kMaxReplicas,
              kInvalidArgument, "number of replicas must be in [0, ", kMaxReplicas, "], got ",
              options.data_parallel_size, " for ", names.size(), " names");
  const std::size_t count = options.data_parallel_size == 0
                                ? names.size()
                                : static_cast<std::size_t>(options.data_parallel_size);
  if (count == 1 && names.size() == 1) return names;
  const std::string first = names.front();
  if (names.size() == 1 && (first == "auto" || first == "cpu" || first == "cuda")) {
    names.resize(count, first);
    for (std::size_t i = 0; first == "cuda" && i < count; ++i) names[i] = cat("cuda:", i);
    return names;
  }
  FOVEA_CHECK(names.size() == count, kInvalidArgument, "device \"", options.device, "\" names ",
              names.size(), ", the number of replicas is ", count);
  const bool cpus = std::ranges::all_of(names, [](const auto& name) { return name == "cpu"; });
  FOVEA_CHECK(cpus || std::ranges::all_of(names, is_cuda), kInvalidArgument,
              "several devices must be all cpu or all cuda, got \"", options.device, "\"");
  std::set<int> gpus;
  for (const std::string& name : names) {
    FOVEA_CHECK(cpus || gpus.insert(cuda_index(name)).second, kInvalidArgument, "device \"",
                options.device, "\" names a GPU twice");
  }
  return names;
}

int thread_count(const EngineOptions& options) {
  FOVEA_CHECK(options.num_threads >= 0, kInvalidArgument, "number of threads must be >= 0, got ",
              options.num_threads);
  return options.num_threads == 0 ? available_cpus() : options.num_threads;
}

DType compute_dtype(const EngineOptions& options, DType activations) {
  switch (options.dtype_compute) {
    case ComputeDType::kFloat32: return DType::kF32;
    case ComputeDType::kBFloat16: return DType::kBF16;
    case ComputeDType::kAuto: break;
  }
  const bool loses_little = options.quantization == Quantization::kInt8;  // beside 8 bits
  return loses_little && gains_by_bf16(detect_cpu_isa()) ? DType::kBF16 : activations;
}

std::vector<Backend> make_backends(const EngineOptions& options) {
  std::vector<std::string> names = replica_devices(options);
  if (names.front() == "auto") names = choose_devices(names.size(), options.log);
  const int count = static_cast<int>(names.size());
  const int threads = thread_count(options);
  std::vector<Backend> backends;
  EngineOptions own = options;
  for (int rank = 0; rank < count; ++rank) {
    own.num_threads = std::max(threads / count + (rank < threads % count ? 1 : 0), 1);
    backends.push_back(make_backend(names[static_cast<std::size_t>(rank)], own));
  }
  return backends;
}

std::vector<EnergyCounter> energy_counters(std::span<const Backend> backends) {
  std::vector<EnergyCounter> counters;
  if (backends.front().device->properties().host_memory) return counters;
  const CudaBackend cuda = find_cuda();
  for (const Backend& backend : backends) {
    const int index = cuda_index(backend.device->properties().name);
    counters.emplace_back(cuda.gpus.at(static_cast<std::size_t>(index)).pci_bus_id);
  }
  return counters;
}

std::string cuda_status() {
  const CudaBackend cuda = find_cuda();
  const std::string gpus = describe_gpus(cuda);
  return usable_gpus(cuda).empty() ? "not used: " + gpus : cat(gpus, " (", cuda.plugin_path, ")");
}

}  // namespace fovea
