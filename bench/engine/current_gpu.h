#pragma once

namespace fovea::bench {

/// Makes a GPU the current device of the calling thread; does nothing in a build without CUDA.
void set_current_gpu(int gpu);

}  // namespace fovea::bench
