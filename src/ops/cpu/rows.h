#pragma once

#include "ops/kernels.h"

namespace fovea::cpu {

/// Bodies of Kernels::copy_row_blocks and Kernels::add_table: submit to a CpuStream; running
/// allocates nothing.
void copy_row_blocks(Stream& stream, const ops::CopyRowBlocksArgs& args);
void add_table(Stream& stream, const ops::AddTableArgs& args);

}  // namespace fovea::cpu
