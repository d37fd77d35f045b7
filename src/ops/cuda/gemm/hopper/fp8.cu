// GEMMs of E4M3. Operands of as many bytes pass through the tensor cores in the same time, so tiles
// and rings are those of the bf16 kernels, with twice the columns in a stage.
#include "ops/cuda/gemm/hopper/kernel.cuh"

namespace fovea::cuda {

namespace gemm {

template <Schedule kWay, class T, int kStages, class N = ClusterTiles<1, 1>, int kHead = 0>
using ToBf16 = Plan<kWay, T, kStages, N, kHead, GemmFormat::kFp8>;
template <Schedule kWay, class T, int kStages, class N = ClusterTiles<1, 1>>
using ToFp8 = Plan<kWay, T, kStages, N, 0, GemmFormat::kFp8ToFp8>;

constexpr HopperGemmKernel kFp8Kernels[] = {
    kernel_of<ToBf16<Schedule::kCooperative, Tile<1, 64, 64>, 6>>("fp8 64x64"),
    kernel_of<ToBf16<Schedule::kCooperative, Tile<2, 64, 64>, 8, ClusterTiles<2, 1>>>(
        "fp8 128x64 by 2x1"),
    kernel_of<ToBf16<Schedule::kCooperative, Tile<2, 64, 72>, 7, ClusterTiles<1, 2>>>(
        "fp8 128x72 by 1x2"),
    kernel_of<ToBf16<Schedule::kCooperative, Tile<2, 64, 128>, 6, ClusterTiles<2, 1>>>(
        "fp8 128x128 by 2x1"),
    kernel_of<ToBf16<Schedule::kCooperative, Tile<2, 64, 144>, 5, ClusterTiles<2, 1>>>(
        "fp8 128x144 by 2x1"),
    kernel_of<ToBf16<Schedule::kCooperative, Tile<3, 64, 144>, 4, ClusterTiles<1, 2>>>(
        "fp8 192x144 by 1x2"),
    kernel_of<ToBf16<Schedule::kCooperative, Tile<3, 64, 192>, 4, ClusterTiles<1, 2>>>(
        "fp8 192x192 by 1x2"),
    kernel_of<ToBf16<Schedule::kPingpong, Tile<2, 128, 144>, 5, ClusterTiles<2, 1>>>(
        "fp8 128x144 by 2x1 alternating"),
    kernel_of<ToBf16<Schedule::kSplitK, Tile<1, 64, 32>, 8>>("fp8 64x32 split"),
    kernel_of<ToBf16<Schedule::kSplitK, Tile<1, 64, 64>, 5>>("fp8 64x64 split"),
    kernel_of<ToBf16<Schedule::kSplitK, Tile<2, 64, 64>, 6, ClusterTiles<2, 1>>>(
        "fp8 128x64 by 2x1 split"),
    kernel_of<ToBf16<Schedule::kCooperative, Tile<2, 64, 216>, 4, ClusterTiles<1, 2>, 72>>(
        "fp8 128x216 by 1x2, heads of 72"),
    kernel_of<ToBf16<Schedule::kCooperative, Tile<2, 64, 192>, 5, ClusterTiles<2, 1>, 64>>(
        "fp8 128x192 by 2x1, heads of 64"),
    kernel_of<ToFp8<Schedule::kCooperative, Tile<1, 64, 32>, 8>>("fp8 64x32 to fp8"),
    kernel_of<ToFp8<Schedule::kCooperative, Tile<1, 64, 64>, 6>>("fp8 64x64 to fp8"),
    kernel_of<ToFp8<Schedule::kCooperative, Tile<2, 64, 128>, 6, ClusterTiles<2, 1>>>(
        "fp8 128x128 by 2x1 to fp8"),
    kernel_of<ToFp8<Schedule::kPingpong, Tile<2, 128, 144>, 5, ClusterTiles<2, 1>>>(
        "fp8 128x144 by 2x1 alternating to fp8"),
};

}  // namespace gemm

std::span<const HopperGemmKernel> fp8_gemm_kernels() { return gemm::kFp8Kernels; }

}  // namespace fovea::cuda
