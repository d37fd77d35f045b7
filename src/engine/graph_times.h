#pragma once

#include <span>
#include <string>
#include <vector>

#include "fovea/options.h"
#include "fovea/tower/device/device.h"
#include "fovea/tower/graph/graph_manager.h"
#include "graph/capture/calibration.h"

namespace fovea {

/// Lets the manager of a replica on `device` use the times that an earlier process has stored in
/// options.cache_dir, and store its own there. A file that cannot be written is one warning.
/// @param model_directory with the configuration of the model.
void keep_graph_times(GraphManagerOptions& manager, const std::string& model_directory,
                      const DeviceProperties& device, const EngineOptions& options);

/// One line that says what measured times are valid for: version, way of measuring, device with its
/// software, attention kernel, configuration of the model and limits of its images.
[[nodiscard]] std::string graph_times_identity(const std::string& model_directory,
                                               const DeviceProperties& device,
                                               const EngineOptions& options);

/// Reads the times stored at `path` for `identity`. Empty if there is no such file, or it is
/// damaged or of another identity: times are only a shortcut.
[[nodiscard]] std::vector<GraphTimes> load_graph_times(const std::string& path,
                                                       const std::string& identity);

/// Replaces the file at `path`; makes its folder if there is none.
/// @throws Error(kIo) with the system's reason.
void save_graph_times(const std::string& path, const std::string& identity,
                      std::span<const GraphTimes> times);

}  // namespace fovea
