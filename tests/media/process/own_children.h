#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace fovea::test {

/// Processes that this one started and that were not reaped, by the thread that started them.
inline std::vector<int> own_children() {
  std::vector<int> children;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream list(thread.path() / "children");
    for (int pid = 0; list >> pid;) children.push_back(pid);
  }
  return children;
}

/// Number of open descriptors.
inline std::size_t open_descriptors() {
  const std::filesystem::directory_iterator begin("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator{}));
}

}  // namespace fovea::test
