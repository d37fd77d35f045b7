// In the place of the kernels of sm_90a where they were not asked for. KernelSets::hopper is false,
// so nothing but the two questions is called.
#include "core/check.h"
#include "ops/cuda/attention/work.h"
#include "ops/cuda/gemm/hopper/hopper_gemm.h"
#include "ops/cuda/grid_attention/grid_attention.h"
#include "ops/cuda/kernel_sets.h"
#include "ops/cuda/tower/blocks.h"

namespace fovea::cuda {

namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::kInternal, "this build has no kernels for Hopper");
}

}  // namespace

bool has_hopper_build() noexcept { return false; }
cudaError_t find_hopper_kernels() { return cudaErrorNoKernelImageForDevice; }

bool has_attention_wgmma(const AttentionWork&) { return false; }
void launch_attention_packing(CudaStream&, const AttentionWork&) { refuse(); }
void launch_attention_wgmma(CudaStream&, const AttentionWork&, int) { refuse(); }

std::span<const BlockKernel> block_kernels() { return {}; }

bool has_grid_attention_wgmma(const GridWork&) { return false; }
std::size_t grid_attention_wgmma_workspace(const GridWork&) { return 0; }
void launch_grid_attention_wgmma(CudaStream&, const GridWork&, int) { refuse(); }

std::span<const HopperGemmKernel> small_gemm_kernels() { return {}; }
std::span<const HopperGemmKernel> wide_gemm_kernels() { return {}; }
std::span<const HopperGemmKernel> pingpong_gemm_kernels() { return {}; }
std::span<const HopperGemmKernel> head_gemm_kernels() { return {}; }
std::span<const HopperGemmKernel> fp8_gemm_kernels() { return {}; }

}  // namespace fovea::cuda
