#pragma once

#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/patch.h"
#include "ops/cpu/vector/vector_kernels.h"

namespace fovea::cpu {

/// Submit to a CpuStream: the bodies of the functions of Kernels with the same names.
void patchify(Stream& stream, const ops::PatchifyArgs& args);
void add_positions_bilinear(Stream& stream, const ops::AddPositionsArgs& args,
                            AddWeighted4 add_weighted4);
void add_positions_bicubic(Stream& stream, const ops::AddPositionsArgs& args,
                           AddWeighted4 add_weighted4);
void gather_rows(Stream& stream, const ops::GatherRowsArgs& args);

}  // namespace fovea::cpu
