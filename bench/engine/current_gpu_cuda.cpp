#include <cuda_runtime_api.h>

#include "engine/current_gpu.h"

namespace fovea::bench {

void set_current_gpu(int gpu) { (void)cudaSetDevice(gpu); }

}  // namespace fovea::bench
