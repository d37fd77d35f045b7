#pragma once

#include <cstddef>
#include <cstdint>

#include "fovea/tower/device/device.h"
#include "fovea/tower/models/encoder_graph_model.h"

namespace fovea {

/// The cost of one forward of a path at a capacity, found by running it over kernels that compute
/// nothing. All rows of the capacity count as live.
struct ForwardCost {
  double flops = 0;             ///< of GEMMs and attention, two per multiply-add
  std::size_t arena_bytes = 0;  ///< most intermediate memory in use at once
};

/// Counts a forward. Touches no device memory and submits nothing.
[[nodiscard]] ForwardCost measure_forward(const EncoderGraphModel& model, const Device& device,
                                          PathId path, const GraphCapacity& capacity);

}  // namespace fovea
