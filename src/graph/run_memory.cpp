// Memory that runs on a lane share.
#include "graph/run_memory.h"

namespace fovea {

RunMemory::RunMemory(Lane& lane, std::size_t num_paths) : lane_(lane) {
  for (std::size_t path = 0; path < num_paths; ++path) {
    paths_.push_back({.feed = InputFeed(lane.device(), lane.compute(), lane.copy()), .output = {}});
  }
}

bool RunMemory::holds(PathId path, const Need& need) const {
  const PathMemory& memory = paths_[index(path)];
  return need.arena <= arena_.bytes() && need.input <= memory.feed.capacity() &&
         need.output <= memory.output.bytes();
}

void RunMemory::reserve(PathId path, const Need& need) {
  lane_.grow(arena_, need.arena);
  paths_[index(path)].feed.reserve(need.input);
  lane_.grow(paths_[index(path)].output, need.output);
}

void RunMemory::clear() {
  lane_.synchronize();
  arena_ = {};
  for (PathMemory& memory : paths_) {
    memory = {.feed = InputFeed(lane_.device(), lane_.compute(), lane_.copy()), .output = {}};
  }
}

RunMemory::Addresses RunMemory::addresses(PathId path) const {
  const PathMemory& memory = paths_[index(path)];
  return {.input = memory.feed.block(), .output = memory.output.data(), .arena = arena_.data()};
}

std::size_t RunMemory::input_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const PathMemory& memory : paths_) bytes += memory.feed.device_bytes();
  return bytes;
}

std::size_t RunMemory::output_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const PathMemory& memory : paths_) bytes += memory.output.bytes();
  return bytes;
}

std::size_t RunMemory::device_bytes() const noexcept {
  return arena_bytes() + input_bytes() + output_bytes();
}

std::size_t RunMemory::host_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const PathMemory& memory : paths_) bytes += memory.feed.host_bytes();
  return bytes;
}

void RunMemory::fill_with_nan() {
  lane_.synchronize();
  fill_with_ones(lane_.device(), lane_.compute(), arena_.data(), arena_.bytes());
  for (PathMemory& memory : paths_) {
    memory.feed.fill_with_nan();
    fill_with_ones(lane_.device(), lane_.compute(), memory.output.data(), memory.output.bytes());
  }
}

}  // namespace fovea
