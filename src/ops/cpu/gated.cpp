// The gated activation on the CPU: ranges of rows on all threads.
#include "ops/cpu/gated.h"

#include "device/cpu/cpu_device.h"
#include "ops/cpu/row_loop.h"
#include "ops/cpu/vector/vector_kernels.h"

namespace fovea::cpu {

void gated(Stream& stream, const ops::GatedArgs& args, GateRow gate_row) {
  static_cast<CpuStream&>(stream).submit([args, gate_row](ThreadPool& pool) {
    const std::int64_t cols = args.out.shape[1];
    for_row_ranges(pool, count_live(args.rows, args.out.shape[0]), 2 * cols,
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t r = first; r < last; ++r) {
                       const float* const gate = args.x.as<float>() + r * 2 * cols;
                       gate_row(args.activation, gate, gate + cols, args.out.as<float>() + r * cols,
                                cols);
                     }
                   });
  });
}

}  // namespace fovea::cpu
