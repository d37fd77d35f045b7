// Attention pooling in terms of layers.
#include "models/common/pooling_head.h"

#include <cmath>

#include "fovea/tower/ops/patch.h"

namespace fovea::common {

PoolingHead load_pooling_head(WeightLoader& loader, const std::string& name,
                              const SiglipConfig& c) {
  const std::int64_t width = c.hidden_size;
  return {.attention = {.qkv = loader.probed_qkv(name + "attention.in_proj", name + "probe", width),
                        .proj = loader.linear(name + "attention.out_proj", width, {width}),
                        .num_heads = c.num_attention_heads},
          .layernorm =
              loader.layer_norm(name + "layernorm", width, static_cast<float>(c.layer_norm_eps)),
          .mlp = {.fc1 = loader.linear(name + "mlp.fc1", c.intermediate_size, {width}),
                  .fc2 = loader.linear(name + "mlp.fc2", width, {c.intermediate_size}),
                  .activation = c.hidden_act}};
}

void pool(ExecContext& ctx, const PoolingHead& head, const ops::Sequences& sequences,
          ConstTensorView x, TensorView vectors) {
  const Arena::Scope scope(ctx.arena);
  const Attention& attention = head.attention;
  const std::int64_t width = x.shape[1];
  const TensorView pooled = ctx.arena.tensor(vectors.dtype, vectors.shape);
  {
    // mixed = softmax(probe k^T / sqrt(head_dim)) v, the same in all rows of a sequence
    const Arena::Scope rows(ctx.arena);
    const TensorView qkv = ctx.arena.tensor(vectors.dtype, {x.shape[0], 3 * width});
    const TensorView mixed = ctx.arena.tensor(vectors.dtype, x.shape);
    ops::projected_attention(ctx,
                             {.x = x,
                              .projection = attention.qkv,
                              .qkv = qkv,
                              .sequences = sequences,
                              .num_heads = attention.num_heads,
                              .head_dim = attention.head_dim(),
                              .scale = 1.0f / std::sqrt(static_cast<float>(attention.head_dim())),
                              .out = mixed});
    const ConstTensorView first{
        sequences.cu_seqlens.data, sequences.cu_seqlens.dtype, {vectors.shape[0]}};
    ops::gather_rows(ctx, {.x = mixed, .index = first, .rows = sequences.seqs, .out = pooled});
  }
  // h = out_proj(mixed), vectors = h + mlp(LN(h))
  ops::linear(ctx, {.x = pooled, .weight = attention.proj, .rows = sequences.seqs, .out = vectors});
  norm(ctx, head.layernorm, vectors, sequences.seqs, pooled);
  add_mlp(ctx, head.mlp, sequences.seqs, pooled, vectors);
}

}  // namespace fovea::common
