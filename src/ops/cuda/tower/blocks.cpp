// Prepares blocks of a tower for the kernel that computes all of them, and starts it.
#include "ops/cuda/tower/blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "core/check.h"
#include "ops/cuda/common/operands.h"
#include "ops/cuda/common/tensor_maps.h"

namespace fovea::cuda {

namespace {

constexpr std::int64_t kElementBytes = 2;  // of bf16

/// The state behind ops::PreparedBlocks.
struct PreparedTower {
  std::vector<const BlockKernel*> kernels;  // those of fewer rows first
  float epsilon;
  std::vector<BlockWeights> blocks;
  std::vector<Buffer> constants;  // that `blocks` point to
};

/// The GEMMs of a block in the order of BlockGemm.
std::array<const ops::PackedLinear*, kNumBlockGemms> gemms_of(const ops::BlockLayers& block) {
  return {&block.qkv, &block.proj, &block.fc1, &block.fc2};
}

bool suits(const BlockKernel& kernel, const ops::BlockLayers& block, float epsilon) {
  for (const ops::PackedLinear* layer : gemms_of(block))
    if (layer->dtype != DType::kBF16) return false;
  return block.qkv.in_features == kernel.width && block.proj.in_features == kernel.width &&
         block.num_heads == kernel.num_heads && block.fc1.out_features == kernel.mlp &&
         block.activation == kernel.activation && block.epsilon == epsilon;
}

std::vector<const BlockKernel*> find_kernels(cudaStream_t stream, int num_sms,
                                             std::span<const ops::BlockLayers> blocks) {
  std::vector<const BlockKernel*> kernels;
  for (const BlockKernel& kernel : block_kernels()) {
    bool suits_all = true;
    for (const ops::BlockLayers& block : blocks)
      suits_all = suits_all && suits(kernel, block, blocks.front().epsilon);
    if (suits_all && kernel.prepare(stream, num_sms)) kernels.push_back(&kernel);
  }
  return kernels;
}

BlockWeights describe(const TensorMaps& maps, const BlockKernel& kernel,
                      const ops::BlockLayers& block) {
  constexpr int kTileDims = 64;
  BlockWeights weights{};
  const std::int64_t width = kernel.width;
  const std::int64_t pairs = kernel.head_dim / 2;
  // [3 * heads][pairs][2][width]: the two rows of a rotation are neighbours.
  weights.pairs = maps.describe({.data = block.qkv.weight.data(),
                                 .element_bytes = kElementBytes,
                                 .dims = 4,
                                 .sizes = {width, 2, pairs, std::int64_t{3} * kernel.num_heads},
                                 .strides = {pairs * width, width, 2 * pairs * width},
                                 .tile = {kTileDims, 2, kWeightRows / 2, 1}});
  const auto gemms = gemms_of(block);
  for (std::size_t i = 0; i < gemms.size(); ++i) {
    const ops::PackedLinear& layer = *gemms[i];
    weights.weight[i] = maps.describe({.data = layer.weight.data(),
                                       .element_bytes = kElementBytes,
                                       .dims = 2,
                                       .sizes = {layer.in_features, layer.out_features},
                                       .strides = {layer.in_features},
                                       .tile = {kTileDims, kWeightRows}});
  }
  return weights;
}

const float* floats_of(ConstTensorView view) { return reinterpret_cast<const float*>(view.data); }

/// Where constants are made, and the kernels that read them.
struct Preparation {
  Device& device;
  cudaStream_t stream;
  std::span<const BlockKernel* const> kernels;
};

/// Makes the constants of a block in memory of its own, which all kernels read.
Buffer make_constants(const Preparation& in, const ops::BlockLayers& block,
                      const ops::BlockLayers* next, BlockWeights& weights) {
  std::array<std::size_t, kNumBlockGemms> columns{};
  for (const BlockKernel* kernel : in.kernels)
    for (std::size_t i = 0; i < columns.size(); ++i)
      columns[i] = std::max(columns[i], static_cast<std::size_t>(kernel->constants[i]));
  std::size_t count = columns[kProj];  // of the entry
  for (const std::size_t of_gemm : columns) count += of_gemm;
  Buffer buffer = in.device.allocate(count * sizeof(float2));
  BlockConstantsWork work{};
  auto* to = reinterpret_cast<float2*>(buffer.data());
  const auto gemms = gemms_of(block);
  for (std::size_t i = 0; i < gemms.size(); ++i) {
    work.weight[i] = reinterpret_cast<const __nv_bfloat16*>(gemms[i]->weight.data());
    if (gemms[i]->has_bias)
      work.bias[i] = reinterpret_cast<const __nv_bfloat16*>(gemms[i]->bias.data());
    work.to[i] = to;
    weights.constants[i] = to;
    to += columns[i];
  }
  work.entry = to;
  weights.entry = to;
  work.gamma1 = floats_of(block.norm1_weight);
  work.beta1 = floats_of(block.norm1_bias);
  work.gamma2 = floats_of(block.norm2_weight);
  work.beta2 = floats_of(block.norm2_bias);
  work.next_gamma1 = next != nullptr ? floats_of(next->norm1_weight) : nullptr;
  in.kernels.front()->make_constants(in.stream, work);
  return buffer;
}

const PreparedTower& prepared_of(const ops::AddBlocksArgs& args) {
  return *static_cast<const PreparedTower*>(args.blocks.state.get());
}

/// The kernel for so many rows; null if they are computed op by op.
const BlockKernel* kernel_for(const PreparedTower& prepared, std::int64_t rows) {
  const auto found = std::ranges::find_if(
      prepared.kernels, [&](const BlockKernel* kernel) { return rows <= kernel->rows; });
  return found == prepared.kernels.end() ? nullptr : *found;
}

void check_x(const BlockKernel& kernel, const ops::AddBlocksArgs& args) {
  check_bf16("add_blocks", "x", args.x);
  FOVEA_CHECK(
      args.x.shape[1] == kernel.width && (!args.cos || args.cos.shape[1] == kernel.head_dim / 2),
      kInvalidArgument, "add_blocks: blocks of width ", kernel.width, " and head dim ",
      kernel.head_dim, " were prepared, got x ", args.x.shape, ", angles ", args.cos.shape);
  check_vectors("add_blocks", "x", args.x);
}

/// Rows, angles and sequences of a launch.
BlocksWork make_work(const BlockKernel& kernel, const PreparedTower& prepared,
                     const ops::AddBlocksArgs& args) {
  BlocksWork work{};
  work.x = reinterpret_cast<__nv_bfloat16*>(args.x.data);
  work.cos = reinterpret_cast<const float*>(args.cos.data);
  work.sin = reinterpret_cast<const float*>(args.sin.data);
  work.cu_seqlens = reinterpret_cast<const std::int32_t*>(args.sequences.cu_seqlens.data);
  work.live_seqs = args.sequences.seqs.count;
  work.live_rows = args.sequences.rows.count;
  work.max_seqs = static_cast<int>(args.sequences.cu_seqlens.shape[0] - 1);
  work.capacity = static_cast<int>(args.x.shape[0]);
  work.scale = 1.0f / std::sqrt(static_cast<float>(kernel.head_dim));
  work.epsilon = prepared.epsilon;
  return work;
}

}  // namespace

ops::PreparedBlocks prepare_blocks(Device& device, const SmPartition& sms,
                                   std::span<const ops::BlockLayers> blocks) {
  const DeviceGuard guard(sms.device_index());
  const UniqueStream stream = sms.create_stream();
  std::vector<const BlockKernel*> kernels = find_kernels(stream.get(), sms.num_sms(), blocks);
  if (kernels.empty()) return {};
  const TensorMaps maps;
  auto prepared = std::make_shared<PreparedTower>();
  prepared->epsilon = blocks.front().epsilon;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    BlockWeights weights = describe(maps, *kernels.front(), blocks[i]);
    const ops::BlockLayers* const next = i + 1 < blocks.size() ? &blocks[i + 1] : nullptr;
    prepared->constants.push_back(
        make_constants({device, stream.get(), kernels}, blocks[i], next, weights));
    prepared->blocks.push_back(weights);
  }
  prepared->kernels = std::move(kernels);
  FOVEA_CUDA_CHECK(cudaStreamSynchronize(stream.get()));
  return {std::move(prepared)};
}

std::size_t add_blocks_workspace(const ops::AddBlocksArgs& args) {
  const std::size_t bytes = args.x.bytes() + Arena::kAlignment - 1;
  return kernel_for(prepared_of(args), args.x.shape[0]) == nullptr
             ? 0
             : args.taps.size() * (bytes / Arena::kAlignment * Arena::kAlignment);
}

std::optional<std::vector<TensorView>> add_blocks(const Submission& submission,
                                                  const ops::AddBlocksArgs& args) {
  const PreparedTower& prepared = prepared_of(args);
  const BlockKernel* const found = kernel_for(prepared, args.x.shape[0]);
  if (found == nullptr) return std::nullopt;
  const BlockKernel& kernel = *found;
  check_x(kernel, args);
  CudaStream& stream = stream_of(submission);
  BlocksWork work = make_work(kernel, prepared, args);
  work.mail = stream.own_scratch().first(kernel.mail_bytes).data();
  std::vector<TensorView> taps;
  std::vector<__nv_bfloat16*> taps_of_blocks(prepared.blocks.size(), nullptr);
  for (const std::int64_t block : args.taps) {
    FOVEA_CHECK(block >= 0 && std::cmp_less(block, prepared.blocks.size()), kInvalidArgument,
                "add_blocks: there is no block ", block, " of ", prepared.blocks.size());
    taps.push_back(submission.arena.tensor(args.x.dtype, args.x.shape));
    taps_of_blocks[static_cast<std::size_t>(block)] =
        reinterpret_cast<__nv_bfloat16*>(taps.back().data);
  }
  for (std::size_t first = 0; first < prepared.blocks.size(); first += kMostBlocksInKernel) {
    const std::size_t count =
        std::min<std::size_t>(prepared.blocks.size() - first, kMostBlocksInKernel);
    work.blocks = static_cast<int>(count);
    std::copy_n(prepared.blocks.begin() + static_cast<std::ptrdiff_t>(first), count, work.block);
    std::copy_n(taps_of_blocks.begin() + static_cast<std::ptrdiff_t>(first), count, work.tap);
    kernel.launch(stream, work);
  }
  return taps;
}

}  // namespace fovea::cuda
