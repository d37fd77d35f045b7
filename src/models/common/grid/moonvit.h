#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fovea/tower/ops/context.h"
#include "fovea/tower/ops/linear.h"
#include "media/normalize.h"
#include "models/common/geometry.h"
#include "models/common/grid/chunks.h"
#include "models/common/grid/inputs.h"
#include "models/common/grid/model.h"
#include "models/common/layers.h"
#include "models/common/weight_loader.h"

namespace fovea::common {

/// MoonViT, a tower over images at their own size, and its projector. Fields are named as in the
/// files of its first family (vision_config.*). Defaults are those of the reference's classes.
struct MoonVitConfig {
  std::int64_t num_hidden_layers = 27;
  std::int64_t hidden_size = 1152;
  std::int64_t intermediate_size = 4304;
  std::int64_t num_attention_heads = 16;
  std::int64_t init_pos_emb_height = 64;  ///< rows of the table of positions
  std::int64_t init_pos_emb_width = 64;
  std::int64_t init_pos_emb_time = 0;    ///< frames of a chunk that have positions; 0: images alone
  std::int64_t text_hidden_size = 2048;  ///< text_config.hidden_size: columns of a row
  double rope_theta = 10000.0;
  ops::Activation hidden_act = ops::Activation::kGeluTanh;
  ops::Activation projector_hidden_act = ops::Activation::kGeluErf;
  double projector_ln_eps = 1e-5;
  GridGeometry grid{.patch_size = 14, .temporal_patch_size = 1};

  [[nodiscard]] std::int64_t head_dim() const { return hidden_size / num_attention_heads; }
  /// Columns of the rows that the projector joins.
  [[nodiscard]] std::int64_t joined_width() const { return grid.merge_area() * hidden_size; }
};

/// The tower on a device. Move-only; shared read-only by all graphs.
struct MoonVitWeights {
  Tensor inv_freq;  ///< [head_dim / 2] f32
  PatchEmbedding patch_embed;
  Tensor pos_emb;  ///< [init_pos_emb_height * init_pos_emb_width, hidden_size] f32
  Tensor times;    ///< [1 + init_pos_emb_time, hidden_size] f32: no time, then frame by frame
  BlockSequence blocks;
  LayerNorm final_layernorm;
  LayerNorm pre_norm;  ///< of rows, before they are joined
  Mlp projector;       ///< merge_area * hidden_size -> text_hidden_size
};

/// The names that a family has for the layers of the projector.
struct ProjectorNames {
  std::string pre_norm;
  std::string fc1;
  std::string fc2;
};

/// The whole list of tensors, by name and shape. Rows of q and k are loaded in the order in which
/// halves of a head rotate. Source: docs/reference/kimi_vl.md, "Tensors" and "Rotary positions".
[[nodiscard]] MoonVitWeights load_moonvit(WeightLoader& loader, const MoonVitConfig& config,
                                          const ProjectorNames& names,
                                          const media::NormalizeTable& normalize);

/// The tower: bytes in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param chunks of frames; absent where every patch has a place of its own in a token.
/// @param out [tokens, text_hidden_size]. Source: docs/reference/kimi_vl.md, "Forward".
void run_moonvit(ExecContext& ctx, const MoonVitConfig& config, const MoonVitWeights& weights,
                 const GridInputs& in, const std::optional<ChunkInputs>& chunks, TensorView out);

/// The facts of the tower.
[[nodiscard]] GridTower moonvit_tower(const MoonVitConfig& config);

}  // namespace fovea::common
