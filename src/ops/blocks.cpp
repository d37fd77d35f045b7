// Checks and dispatch of blocks that follow one another.
#include "fovea/tower/ops/blocks.h"

#include "core/check.h"
#include "ops/arg_check.h"
#include "ops/kernels.h"
#include "ops/steps.h"

namespace fovea::ops {

namespace {

constexpr const char* kPrepare = "prepare_blocks";
constexpr const char* kAdd = "add_blocks";

void check(const BlockLayers& block) {
  const std::int64_t features = block.qkv.in_features;
  for (const ConstTensorView& norm :
       {block.norm1_weight, block.norm1_bias, block.norm2_weight, block.norm2_bias})
    check_tensor(kPrepare, "norm", norm, DType::kF32, {features});
  FOVEA_CHECK(block.num_heads > 0 && block.proj.in_features % block.num_heads == 0,
              kInvalidArgument, kPrepare, ": num_heads must divide ", block.proj.in_features,
              " features, got ", block.num_heads);
  FOVEA_CHECK(
      block.qkv.out_features == 3 * block.proj.in_features && block.proj.out_features == features &&
          block.fc1.in_features == features && block.fc2.in_features == block.fc1.out_features &&
          block.fc2.out_features == features,
      kInvalidArgument, kPrepare, ": layers do not follow one another: qkv ", features, " to ",
      block.qkv.out_features, ", proj ", block.proj.in_features, " to ", block.proj.out_features,
      ", fc1 ", block.fc1.in_features, " to ", block.fc1.out_features, ", fc2 ",
      block.fc2.in_features, " to ", block.fc2.out_features);
}

}  // namespace

PreparedBlocks prepare_blocks(Device& device, std::span<const BlockLayers> blocks) {
  for (const BlockLayers& block : blocks) check(block);
  if (blocks.empty()) return {};
  return device.kernels().prepare_blocks(device, blocks);
}

std::optional<std::vector<TensorView>> add_blocks(ExecContext& ctx, const AddBlocksArgs& args) {
  check_activation(kAdd, "x", args.x, 2);
  const std::int64_t rows = args.x.shape[0];
  if (args.cos || args.sin) {
    const std::int64_t pairs = args.cos.shape.rank() == 2 ? args.cos.shape[1] : 0;
    check_tensor(kAdd, "cos", args.cos, DType::kF32, {rows, pairs});
    check_tensor(kAdd, "sin", args.sin, DType::kF32, {rows, pairs});
  }
  check_sequences(kAdd, args.sequences, ctx.all_rows(rows));
  if (ctx.team != nullptr) return std::nullopt;
  if (rows == 0) return std::vector<TensorView>(args.taps.size(), args.x);
  if (!args.blocks || args.sequences.is_masked()) return std::nullopt;
  return ctx.kernels.add_blocks(ctx.submission(), args);
}

}  // namespace fovea::ops
