#pragma once

#include "device/cuda/cuda_stream.h"
#include "fovea/tower/ops/context.h"
#include "ops/quantized.h"

namespace fovea::cuda {

/// out[r, c] = x[r, c] / scale[r], rounded to E4M3, with scale[r] = max |x[r, :]| / 448, or 1 for a
/// row of zeros. Rows that are not live are not written. Asynchronous; safe to capture.
/// @param x [rows, cols] bf16 at a multiple of 16 bytes, cols a multiple of 16.
void quantize_rows(CudaStream& stream, ConstTensorView x, LiveRows rows,
                   const ops::QuantizedRows& out, int num_sms);

}  // namespace fovea::cuda
