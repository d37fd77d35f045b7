// Final rows of a tower that has one path.
#include "fovea/tower/models/encoder_graph_model.h"

#include "core/check.h"
#include "fovea/tower/ops/context.h"

namespace fovea {

void EncoderGraphModel::assemble(ExecContext& ctx, PathId, TensorView rows,
                                 std::span<const ItemPart> parts,
                                 std::span<const TensorView> out) const {
  FOVEA_CHECK(graph_spec().paths.size() == 1, kInternal, "a model with ", graph_spec().paths.size(),
              " paths must assemble its rows itself");
  // Rows of neighbouring parts often go to neighbouring destinations; those are one copy.
  const std::byte* source = rows.data;
  std::byte* destination = nullptr;
  std::size_t bytes = 0;  // to be copied from `source` to `destination`
  const auto flush = [&] {
    if (bytes > 0) ctx.stream.copy(destination, source, bytes);
    source += bytes;
    bytes = 0;
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ItemSpec& spec = parts[i].plan().spec;
    FOVEA_CHECK(out[i].shape[0] == spec.out_rows && spec.path_tokens[0] == spec.out_rows, kInternal,
                "item needs ", spec.path_tokens[0], " rows, its destination has ", out[i].shape[0]);
    FOVEA_CHECK(rows.shape[1] == out[i].shape[1], kInternal, "rows of the path have ",
                rows.shape[1], " columns, those of items ", out[i].shape[1]);
    const TensorView place =
        row_range(out[i], parts[i].first * parts[i].units().rows, parts[i].tokens());
    if (bytes == 0 || place.data != destination + bytes) {
      flush();
      destination = place.data;
    }
    bytes += place.bytes();
  }
  flush();
}

}  // namespace fovea
