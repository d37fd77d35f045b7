// Queues of one device, and growth of the memory their work uses.
#include "graph/lane.h"

#include <algorithm>

namespace fovea {

Lane::Lane(Device& device) : device_(device), compute_(device.create_stream()) {
  if (device.properties().host_memory) return;  // work runs at once: one queue is all there is
  copy_ = device.create_copy_stream();
  side_ = device.create_stream();
  constexpr int kMostCopiers = 8;  // more gain nothing
  copiers_ = std::make_unique<ThreadPool>(std::min(kMostCopiers, available_cpus()));
}

ExecContext Lane::context(Arena& arena, bool is_recorded) const noexcept {
  return {.stream = compute(),
          .kernels = device_.kernels(),
          .arena = arena,
          .side = side(),
          .is_recorded = is_recorded};
}

void Lane::grow(Buffer& buffer, std::size_t bytes) {
  if (bytes <= buffer.bytes()) return;
  synchronize();
  buffer = {};  // before the new memory is allocated: both together may not fit
  buffer = device_.allocate(bytes);
}

void Lane::synchronize() {
  if (copy_) copy_->synchronize();
  if (side_) side_->synchronize();
  compute_->synchronize();
}

}  // namespace fovea
