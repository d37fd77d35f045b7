// A forward pass over counting kernels, a measuring arena and a queue that goes nowhere.
#include "graph/capture/forward_cost.h"

#include "core/check.h"
#include "fovea/tower/ops/context.h"
#include "graph/input_block.h"
#include "ops/cost_kernels.h"

namespace fovea {

namespace {

/// Takes work and drops it: what a forward submits by itself, copies for example, must not run on
/// addresses that only serve to measure.
class NowhereStream final : public Stream {
 public:
  void copy(std::byte*, const std::byte*, std::size_t) override {}
  void fill_zero(std::byte*, std::size_t) override {}
  void copy_rows(const RowCopy&) override {}
  [[nodiscard]] std::unique_ptr<RecordedGraph> capture(const std::function<void()>&) override {
    FOVEA_CHECK(false, kInternal, "capture inside a forward");
  }
  void replay(const RecordedGraph&) override {
    FOVEA_CHECK(false, kInternal, "replay inside a forward");
  }
  void wait_for(Stream&) override {}
  void meet(const Team&) override {}
  [[nodiscard]] bool is_idle() const override { return true; }
  void synchronize() override {}
};

}  // namespace

ForwardCost measure_forward(const EncoderGraphModel& model, const Device& device, PathId path,
                            const GraphCapacity& capacity) {
  NowhereStream stream;
  const CostKernels kernels(device.kernels());
  Arena arena = Arena::measuring();
  ExecContext ctx{.stream = stream, .kernels = kernels, .arena = arena, .side = stream};
  const Team team{.size = capacity.team};
  if (team.size > 1) ctx.team = &team;

  // Inputs and output get addresses that test as present, overlap nothing that the measuring arena
  // hands out, and lead nowhere.
  // NOLINTBEGIN(performance-no-int-to-ptr)
  auto* const nowhere = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 60);
  auto* const nowhere_else = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 61);
  // NOLINTEND(performance-no-int-to-ptr)
  const InputLayout layout(model.inputs(path, capacity));
  const TensorView out{nowhere_else,
                       device.properties().activation_dtype,
                       {capacity.tokens, model.path_width(path)}};
  model.forward(ctx, path, capacity, layout.views(nowhere), out);
  return {.flops = kernels.flops(), .arena_bytes = arena.high_water()};
}

}  // namespace fovea
