// Bodies of the CPU ops for processors without a leaf of their own.
#include "ops/cpu/vector/simd_portable.h"
// The bodies are templates over the type Simd of that file.
#include "ops/cpu/attention_body.h"
#include "ops/cpu/grid_body.h"
#include "ops/cpu/row_bodies.h"

namespace fovea::cpu {

constinit const VectorKernels kVectorKernelsPortable = {
    .attention = &attention_task<Simd>,
    .grid_bias = &grid_bias<Simd>,
    .exp2 = &exp2_array<Simd>,
    .layer_norm = &layer_norm_rows<Simd>,
    .rms_norm = &rms_norm_rows<Simd>,
    .rotate = &rotate_heads<Simd>,
    .add_weighted4 = &add_weighted4_row<Simd>,
    .activate = &activate_row<Simd>,
    .gate = &gate_row<Simd>,
};

}  // namespace fovea::cpu
