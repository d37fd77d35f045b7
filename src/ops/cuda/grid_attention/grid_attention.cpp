// Chooses between the grid attention kernels and translates the arguments for them.
#include "ops/cuda/grid_attention/grid_attention.h"

#include <cmath>

#include "core/check.h"
#include "ops/cuda/attention/work.h"
#include "ops/cuda/common/operands.h"

namespace fovea::cuda {

namespace {

GridWork make_work(const ops::GridAttentionArgs& args) {
  const auto side = [&](std::int64_t whole) {
    return static_cast<int>(args.window > 0 ? args.window : whole);
  };
  GridWork work{.qkv = args.qkv.data,
                .pad_qkv = args.pad_qkv.as<float>(),
                .rel_pos_h = args.rel_pos_h.as<float>(),
                .rel_pos_w = args.rel_pos_w.as<float>(),
                .live = args.images.count,
                .images = static_cast<int>(args.qkv.shape[0] / (args.height * args.width)),
                .height = static_cast<int>(args.height),
                .width = static_cast<int>(args.width),
                .side_h = side(args.height),
                .side_w = side(args.width),
                .windows_y = 0,
                .windows_x = 0,
                .num_heads = static_cast<int>(args.num_heads),
                .head_dim = static_cast<int>(args.head_dim),
                .scale = std::abs(args.scale),
                .out = args.out.data};
  work.windows_y = (work.height + work.side_h - 1) / work.side_h;
  work.windows_x = (work.width + work.side_w - 1) / work.side_w;
  if (args.scale < 0.0f) work.query_flip = kBf16SignBits;
  if (args.scale == 0.0f) work.query_keep = 0;
  return work;
}

void check(const ops::GridAttentionArgs& args) {
  check_bf16("grid_attention", "qkv", args.qkv);
  check_vectors("grid_attention", "qkv", args.qkv);
  check_vectors("grid_attention", "out", args.out);
  FOVEA_CHECK(args.head_dim <= kMaxAttentionHeadDim, kUnsupported,
              "grid_attention: head_dim must be at most ", kMaxAttentionHeadDim, " on a GPU, got ",
              args.head_dim);
  constexpr std::int64_t kMostSide = 1024;
  FOVEA_CHECK(args.window <= kMostSide && args.height <= kMostSide && args.width <= kMostSide,
              kUnsupported, "grid_attention: sides must be at most ", kMostSide,
              " on a GPU, got a grid of ", args.height, "x", args.width, " and window ",
              args.window);
  FOVEA_CHECK(args.qkv.shape[0] <= INT32_MAX / 4, kUnsupported,
              "grid_attention: ", args.qkv.shape[0], " rows are too many for a GPU");
}

}  // namespace

void grid_attention(const Submission& submission, const ops::GridAttentionArgs& args, bool hopper,
                    int num_sms) {
  check(args);
  GridWork work = make_work(args);
  if (!hopper || !has_grid_attention_wgmma(work)) {
    return launch_grid_attention_mma(stream_of(submission), work);
  }
  const Arena::Scope scope(submission.arena);
  work.workspace = take_scratch(submission, grid_attention_wgmma_workspace(work));
  launch_grid_attention_wgmma(stream_of(submission), work, num_sms);
}

std::size_t grid_attention_workspace(const ops::GridAttentionArgs& args, bool hopper) {
  check(args);
  const GridWork work = make_work(args);
  return hopper && has_grid_attention_wgmma(work) ? grid_attention_wgmma_workspace(work) : 0;
}

}  // namespace fovea::cuda
