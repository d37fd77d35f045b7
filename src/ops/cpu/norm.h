#pragma once

#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/norm.h"
#include "ops/cpu/vector/vector_kernels.h"

namespace fovea::cpu {

/// Submit to a CpuStream: the bodies of the functions of Kernels with the same names.
void layer_norm(Stream& stream, const ops::LayerNormArgs& args, NormRows norm_rows);
void rms_norm(Stream& stream, const ops::RmsNormArgs& args, NormRows norm_rows);

}  // namespace fovea::cpu
