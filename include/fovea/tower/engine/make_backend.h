#pragma once

#include <memory>
#include <string>

#include "fovea/export.h"
#include "fovea/options.h"
#include "fovea/tower/device/device.h"

namespace fovea {

/// A device and what it computes with. The kernels must outlive the device, hence the order.
struct Backend {
  std::shared_ptr<const Kernels> kernels;  ///< null where the device brings its own
  std::unique_ptr<Device> device;
};

/// Makes the device that `name` asks for.
/// @param name "auto" (the first GPU that can be used, else the CPU), "cpu", "cuda" (the GPU of
/// index 0) or "cuda:<index>".
/// @param options of which num_threads, attention, cache_dir and log are used.
/// @throws Error(kInvalidArgument) for another name, Error(kUnsupported) if a GPU is asked for by
/// name and cannot be used, with the reason.
[[nodiscard]] FOVEA_API Backend make_backend(const std::string& name,
                                             const EngineOptions& options = {});

}  // namespace fovea
