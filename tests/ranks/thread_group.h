#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "fovea/communicator.h"

namespace fovea::test {

/// Calls work(communicator) on a thread for every rank, and returns when all have ended.
/// @return the error of each, where it ended with one.
inline std::vector<std::optional<Error>> on_ranks(
    const std::vector<std::unique_ptr<Communicator>>& group,
    const std::function<void(Communicator&)>& work) {
  std::vector<std::optional<Error>> errors(group.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        work(*group[rank]);
      } catch (const Error& error) {
        errors[rank] = error;
      }
    });
  }
  threads.clear();
  return errors;
}

}  // namespace fovea::test
