// Capture and replay of the graph of one budget.
#include "graph/capture/budget_graph.h"

#include <algorithm>

#include "core/check.h"
#include "core/stopwatch.h"
#include "fovea/error.h"

namespace fovea {

namespace {

RunMemory::Need larger_of(const RunMemory::Need& a, const RunMemory::Need& b) noexcept {
  return {.arena = std::max(a.arena, b.arena),
          .input = std::max(a.input, b.input),
          .output = std::max(a.output, b.output)};
}

bool has_room_for(const GraphCapacity& size, const GraphCapacity& wanted) noexcept {
  return wanted.tokens <= size.tokens && wanted.items <= size.items && wanted.seqs <= size.seqs;
}

}  // namespace

std::string describe(const GraphSpec& spec, const GraphKey& key) {
  return cat("path=", spec.paths[static_cast<std::size_t>(key.path)].name, " budget=", key.budget);
}

BudgetGraph::BudgetGraph(const EncoderGraphModel& model, const Device& device, const GraphKey& key,
                         std::span<const GraphCapacity> sizes)
    : key_(key) {
  recorded_.reserve(sizes.size());
  for (const GraphCapacity& size : sizes) {
    recorded_.push_back({.forward = SizedForward(model, device, key.path, size)});
    need_ = larger_of(need_, recorded_.back().forward.need());
  }
}

std::size_t BudgetGraph::recording_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const Recorded& recorded : recorded_) {
    if (recorded.recording) bytes += recorded.recording->bytes();
  }
  return bytes;
}

bool BudgetGraph::is_complete() const noexcept {
  return std::ranges::all_of(
      recorded_, [](const Recorded& recorded) { return recorded.recording != nullptr; });
}

void BudgetGraph::capture(Lane& lane, RunMemory& memory) {
  FOVEA_CHECK(memory.holds(key_.path, need()), kInternal, "graph of budget ", key_.budget,
              " needs more memory than is reserved");
  for (Recorded& recorded : recorded_) recorded.recording.reset();
  captured_ = memory.addresses(key_.path);
  capture_ms_ = 0;
  record(recorded_.back(), lane, memory);
}

bool BudgetGraph::record_next(Lane& lane, RunMemory& memory) {
  const auto is_missing = [](const Recorded& recorded) { return recorded.recording == nullptr; };
  const auto next = std::find_if(recorded_.rbegin(), recorded_.rend(), is_missing);
  if (next == recorded_.rend()) return false;
  record(*next, lane, memory);
  return true;
}

void BudgetGraph::record(Recorded& recorded, Lane& lane, RunMemory& memory) {
  const Stopwatch watch;
  const auto forward = [&] { recorded.forward.submit(lane, memory, true); };
  lane.synchronize();
  recorded.forward.feed_zeros(lane, memory);
  forward();
  forward();
  lane.synchronize();
  recorded.recording = lane.compute().capture(forward);
  capture_ms_ += watch.elapsed_ms();
}

TensorView BudgetGraph::replay(Lane& lane, RunMemory& memory, std::span<const ItemPart> parts,
                               InputScratch& scratch) const {
  FOVEA_CHECK(recorded_.back().recording != nullptr && captured_ == memory.addresses(key_.path),
              kInternal, "memory of the graph of budget ", key_.budget, " has moved since capture");
  const Recorded& recorded = feed(lane, memory, parts, scratch);
  lane.compute().replay(*recorded.recording);
  return recorded.forward.output(memory, parts);
}

const BudgetGraph::Recorded& BudgetGraph::feed(Lane& lane, RunMemory& memory,
                                               std::span<const ItemPart> parts,
                                               InputScratch& scratch) const {
  const GraphCapacity wanted = exact_capacity(parts);
  for (const Recorded& part : std::span(recorded_).first(recorded_.size() - 1)) {
    if (part.recording == nullptr || !has_room_for(part.forward.capacity(), wanted)) continue;
    try {
      part.forward.feed(lane, memory, parts, scratch);
      return part;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable) throw;  // else an input of a larger size may do
    }
  }
  recorded_.back().forward.feed(lane, memory, parts, scratch);
  return recorded_.back();
}

}  // namespace fovea
