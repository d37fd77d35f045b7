// The graphs that exist, where memory of the host runs out.
#include <gtest/gtest.h>

#include <array>
#include <exception>

#include "device/cpu/cpu_device.h"
#include "graph/capture/graph_set.h"
#include "graph/mock_model.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/allocations.h"

namespace fovea {
namespace {

using test::FailingAllocation;

TEST(GraphSetWithoutMemory, KeepsTheGraphsOfMemoryThatStays) {
  const test::MockModel model;
  const auto kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  const auto device = make_cpu_device(1, *kernels);
  GraphConfig config;
  config.path_budgets = {{16, 64}};
  config.max_items = 20;
  config.max_seqs = 40;
  const GraphKey small{.budget = 16};
  const GraphKey large{.budget = 64};
  int num_failed = 0;
  bool happened = true;
  for (std::int64_t nth = 1; happened; ++nth) {
    Lane lane(*device);
    GraphSet graphs(model, config, lane);
    (void)graphs.ensure(std::array{small});
    const std::size_t arena_bytes = graphs.memory().arena_bytes();
    bool has_failed = false;
    {
      const FailingAllocation failing(nth, FailingAllocation::Lasts::kOnce);
      try {
        (void)graphs.reserve(std::array{large});
      } catch (const std::exception&) {
        has_failed = true;
      }
      happened = failing.happened();
    }
    num_failed += has_failed ? 1 : 0;
    const bool has_moved = graphs.memory().arena_bytes() != arena_bytes;
    EXPECT_TRUE(has_moved || graphs.find(small) != nullptr) << nth;
  }
  EXPECT_GT(num_failed, 0);
}

}  // namespace
}  // namespace fovea
