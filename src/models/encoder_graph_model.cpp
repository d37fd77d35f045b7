// Final rows of a tower that has one path.
#include "fovea/tower/models/encoder_graph_model.h"

#include "core/check.h"
#include "fovea/tower/ops/context.h"

namespace fovea {

void EncoderGraphModel::assemble(ExecContext& ctx, std::span<const PathOutput> outputs,
                                 std::span<const PreparedItem* const> items,
                                 std::span<const TensorView> out) const {
  FOVEA_CHECK(outputs.size() == 1, kInternal, "a model with ", outputs.size(),
              " paths must assemble its rows itself");
  // Rows of neighbouring items often go to neighbouring destinations; those are one copy.
  const std::byte* source = outputs[0].rows.data;
  std::byte* destination = nullptr;
  std::size_t bytes = 0;  // to be copied from `source` to `destination`
  const auto flush = [&] {
    if (bytes > 0) ctx.stream.copy(destination, source, bytes);
    source += bytes;
    bytes = 0;
  };
  for (std::size_t i = 0; i < items.size(); ++i) {
    FOVEA_CHECK(out[i].shape[0] == items[i]->plan.spec.out_rows, kInternal, "item needs ",
                items[i]->plan.spec.out_rows, " rows, its destination has ", out[i].shape[0]);
    if (out[i].bytes() == 0) continue;
    if (bytes == 0 || out[i].data != destination + bytes) {
      flush();
      destination = out[i].data;
    }
    bytes += out[i].bytes();
  }
  flush();
}

}  // namespace fovea
