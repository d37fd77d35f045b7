// One forward of a path: sized once, then fed and submitted.
#include "graph/sized_forward.h"

#include <utility>

#include "fovea/tower/ops/context.h"
#include "graph/capture/forward_cost.h"

namespace fovea {

GraphCapacity exact_capacity(std::span<const ItemPart> parts) {
  GraphCapacity capacity;
  const PreparedItem* last = nullptr;
  for (const ItemPart& part : parts) {
    capacity.items += std::exchange(last, part.item) == part.item ? 0 : 1;
    capacity.tokens += part.team.size > 1 ? part.team.room(part.units().rows) : part.tokens();
    capacity.team = part.team.size;
    capacity.seqs += part.seqs();
  }
  return capacity;
}

SizedForward::SizedForward(const EncoderGraphModel& model, const Device& device, PathId path,
                           const GraphCapacity& capacity)
    : model_(model),
      path_(path),
      capacity_(capacity),
      dtype_(device.properties().activation_dtype),
      layout_(model.inputs(path, capacity)),
      need_{.arena = measure_forward(model, device, path, capacity).arena_bytes,
            .input = layout_.bytes(),
            .output = aligned_bytes(rows_at(nullptr).bytes())} {}

TensorView SizedForward::rows_at(std::byte* memory) const {
  return {memory, dtype_, {capacity_.tokens, model_.path_width(path_)}};
}

void SizedForward::feed(Lane& lane, RunMemory& memory, std::span<const ItemPart> parts,
                        InputScratch& scratch) const {
  const InputFill fill{
      .model = model_, .path = path_, .capacity = capacity_, .parts = parts, .layout = layout_};
  feed_inputs(fill, memory.feed(path_), scratch, lane.copiers());
}

void SizedForward::feed_zeros(Lane& lane, RunMemory& memory) const {
  lane.compute().fill_zero(memory.addresses(path_).input, layout_.bytes());
}

void SizedForward::submit(Lane& lane, RunMemory& memory, bool is_recorded, const Team* team) const {
  const RunMemory::Addresses at = memory.addresses(path_);
  Arena arena = memory.arena();
  ExecContext ctx = lane.context(arena, is_recorded);
  ctx.team = team;
  model_.forward(ctx, path_, capacity_, layout_.views(at.input), rows_at(at.output));
}

TensorView SizedForward::output(const RunMemory& memory, std::span<const ItemPart> parts) const {
  std::int64_t tokens = 0;
  for (const ItemPart& part : parts) tokens += part.tokens();
  return row_range(rows_at(memory.addresses(path_).output), 0, tokens);
}

}  // namespace fovea
