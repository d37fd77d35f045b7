#pragma once

#include <cstdint>
#include <string>

#include "models/common/layers.h"
#include "models/common/views/siglip.h"
#include "models/common/weight_loader.h"

namespace fovea::common {

/// SigLIP's pooling head: attention of one learned query, the probe, over the rows of an image, and
/// an MLP. Move-only.
struct PoolingHead {
  Attention attention;  ///< whose q is the probe's, whatever the row
  LayerNorm layernorm;
  Mlp mlp;
};

/// Its tensors. @param name what their names begin with: "head.".
/// Source: docs/reference/retrieval.md, "SigLIP".
[[nodiscard]] PoolingHead load_pooling_head(WeightLoader& loader, const std::string& name,
                                            const SiglipConfig& config);

/// h = out_proj(attention(probe, x)), vectors = h + mlp(LN(h)): one for each sequence.
/// Asynchronous on ctx.stream; safe to capture. All rows of a sequence have the same query, so the
/// first of each is taken, before the layers behind the attention.
/// @param x [rows, hidden_size]. @param vectors [sequences, hidden_size].
void pool(ExecContext& ctx, const PoolingHead& head, const ops::Sequences& sequences,
          ConstTensorView x, TensorView vectors);

}  // namespace fovea::common
