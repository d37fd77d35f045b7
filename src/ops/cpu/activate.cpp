// Activations on their own on the CPU: ranges of rows on all threads.
#include "ops/cpu/activate.h"

#include "device/cpu/cpu_device.h"
#include "ops/cpu/row_loop.h"
#include "ops/cpu/vector/vector_kernels.h"

namespace fovea::cpu {

void activate(Stream& stream, const ops::ActivateArgs& args, ActivateRow activate_row) {
  static_cast<CpuStream&>(stream).submit([args, activate_row](ThreadPool& pool) {
    const std::int64_t cols = args.x.shape[1];
    for_row_ranges(pool, count_live(args.rows, args.x.shape[0]), cols,
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t r = first; r < last; ++r)
                       activate_row(args.activation, args.x.as<float>() + r * cols, cols);
                   });
  });
}

}  // namespace fovea::cpu
