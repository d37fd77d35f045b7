#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "device/energy_counter.h"
#include "fovea/options.h"
#include "fovea/tower/core/dtype.h"
#include "fovea/tower/engine/make_backend.h"

namespace fovea {

struct CudaBackend;  // device/cuda_plugin.h

/// Threads that options.num_threads stands for. @throws Error(kInvalidArgument) if it is negative.
[[nodiscard]] int thread_count(const EngineOptions& options);

/// What the GEMMs of a tower multiply that are not quantized, on a device with these activations.
[[nodiscard]] DType compute_dtype(const EngineOptions& options, DType activations);

/// What "auto" is for `count` replicas: the first GPUs that can be used, or CPUs if none can.
/// @throws Error(kUnsupported) if GPUs can be used, but fewer than `count`.
[[nodiscard]] std::vector<std::string> auto_devices(const CudaBackend& cuda, std::size_t count);

/// Names of the devices that options.device and options.data_parallel_size ask for, one per
/// replica: "cuda" for 2 replicas is "cuda:0" and "cuda:1", "auto" stays to be decided. Looks at no
/// device.
/// @throws Error(kInvalidArgument) if the two contradict each other, if CPUs and GPUs are mixed, or
/// a GPU comes twice: replicas on one GPU would share its memory and its time, and gain nothing.
[[nodiscard]] std::vector<std::string> replica_devices(const EngineOptions& options);

/// Makes the devices of all replicas. CPUs divide the threads among them, at least one each.
/// @throws as make_backend and replica_devices.
[[nodiscard]] std::vector<Backend> make_backends(const EngineOptions& options);

/// Counters of the energy of these devices, in their order; none for CPUs.
/// @param backends of one engine: at least one, and all of one kind.
[[nodiscard]] std::vector<EnergyCounter> energy_counters(std::span<const Backend> backends);

/// The GPUs, those that cannot be used with the reason, and the plugin that drives them; why no GPU
/// is used if so.
[[nodiscard]] std::string cuda_status();

}  // namespace fovea
