// Steady state allocates nothing: counted by replacing the global operator new of this executable.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "graph/harness.h"
#include "graph/recording_log.h"

namespace {

// NOLINTNEXTLINE(*-avoid-non-const-global-variables)
std::atomic<std::int64_t> num_allocations{0};

void* counted_allocate(std::size_t bytes) {
  ++num_allocations;
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted_allocate(bytes); }
void* operator new[](std::size_t bytes) { return counted_allocate(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++num_allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

/// Allocations of `rounds` executions after one that sizes the scratch memory.
template <class Model>
std::int64_t allocations_of(Harness<Model>& h, const Batch& batch, int rounds) {
  const OutputRows out(*h.device, batch, h.model.graph_spec().out_width);
  h.manager.execute(batch.pointers(), out.views());
  const std::int64_t before = num_allocations;
  for (int round = 0; round < rounds; ++round) h.manager.execute(batch.pointers(), out.views());
  return num_allocations - before;
}

/// Narrow, so that thousands of replays cost little arithmetic.
MockModel narrow_model() { return MockModel({.hidden = 4, .width = 4}); }

TEST(Allocation, TheCounterCounts) {
  const std::int64_t before = num_allocations;
  const auto memory = std::make_unique<int>(1);
  EXPECT_EQ(num_allocations - before, 1);
}

TEST(Allocation, ReplayAllocatesNothing) {
  MockHarness h(narrow_model(), small_options());
  h.manager.capture();
  const Batch batch =
      mock_batch(h.model, {{1, 4, 4}, {2, 4, 4}, {1, 16, 16}, {1, 2, 2}, {1, 6, 6}});
  EXPECT_EQ(allocations_of(h, batch, 10'000), 0);
  EXPECT_EQ(h.manager.stats().graph_misses, 0);
}

TEST(Allocation, ReplayFormatsNoLineThatTheLogDoesNotWant) {
  RecordingLog log(LogLevel::kInfo);
  GraphManagerOptions options = small_options();
  options.log = &log;
  MockHarness h(narrow_model(), options);
  h.manager.capture();
  const Batch batch = mock_batch(h.model, {{1, 4, 4}, {2, 4, 4}, {1, 16, 16}});
  EXPECT_EQ(allocations_of(h, batch, 1'000), 0);
  EXPECT_EQ(h.manager.stats().graph_misses, 0);
}

TEST(Allocation, ReplayOfTwoPathsAllocatesNothing) {
  GraphManagerOptions options;
  options.user.encoder_cudagraph_max_vision_items_per_batch = 4;
  DualHarness h(DualModel(1088), options);
  h.manager.capture();
  const Batch batch({h.model.make_crop(2, 2, 1), h.model.make_crop(1, 1, 2)});
  EXPECT_EQ(allocations_of(h, batch, 100), 0);
  EXPECT_EQ(h.manager.stats().graph_misses, 0);
}

}  // namespace
}  // namespace fovea
