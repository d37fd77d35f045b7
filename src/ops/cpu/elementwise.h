#pragma once

#include "ops/cpu/vector/vector_kernels.h"
#include "ops/kernels.h"

namespace fovea::cpu {

/// Submit to a CpuStream: the bodies of the functions of Kernels with the same names. Running
/// allocates nothing.
void activate(Stream& stream, const ops::ActivateArgs& args, ActivateRow activate_row);
void gated(Stream& stream, const ops::GatedArgs& args, GateRow gate_row);
void copy_row_blocks(Stream& stream, const ops::CopyRowBlocksArgs& args);
void add_table(Stream& stream, const ops::AddTableArgs& args);

}  // namespace fovea::cpu
