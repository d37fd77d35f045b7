// The parts of the protocol that are the same for every model.
#include "models/encoder_graph_model.h"

#include "ops/context.h"

namespace fovea {

InputWriter::Slot& InputWriter::slot(std::string_view name) {
  for (Slot& slot : slots_) {
    if (slot.decl->name == name) return slot;
  }
  FOVEA_CHECK(false, kInternal, "no input buffer is named \"", name, "\"");
}

TensorView InputWriter::claim(std::string_view name, std::int64_t rows) {
  Slot& target = slot(name);
  const Shape& shape = target.decl->shape;
  const std::int64_t held = shape[0] / target.decl->parts;
  target.too_small = rows > held;
  FOVEA_CHECK(!target.too_small, kUnavailable, "input \"", name, "\" holds ", held,
              " rows, the batch needs ", rows);
  target.rows_written = rows;
  if (target.decl->parts > 1) return {target.memory, target.decl->dtype, shape};
  std::array<std::int64_t, kMaxRank> sizes{};
  std::copy(shape.sizes().begin(), shape.sizes().end(), sizes.begin());
  sizes[0] = rows;
  return {target.memory, target.decl->dtype,
          Shape(std::span(sizes.data(), static_cast<std::size_t>(shape.rank())))};
}

std::vector<std::int64_t> EncoderGraphModel::sample_frames(std::int64_t, double, double) const {
  FOVEA_CHECK(false, kUnsupported, "the model takes no videos");
}

ItemPlan EncoderGraphModel::plan_grid(Modality, const std::array<std::int64_t, 3>&) const {
  FOVEA_CHECK(false, kUnsupported, "the model takes pictures, no pixel values");
}

void EncoderGraphModel::fill_pixel_values(const ItemPlan&, const ConstTensorView&,
                                          std::span<std::uint8_t>) const {
  FOVEA_CHECK(false, kUnsupported, "the model takes pictures, no pixel values");
}

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

void InputWriter::keep(std::string_view name) { slot(name).kept = true; }

}  // namespace fovea
