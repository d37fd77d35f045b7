// Rooms include downwards only. This is what keeps the graph manager free of model names, the
// programs on the public interface, and CUDA headers inside the CUDA folders.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "project/tree.h"

namespace fovea::test {
namespace {

/// Folder of the tree -> rooms, or single headers, that its files may include besides their own.
/// Source: docs/architecture.md, "Which way includes point".
const std::map<std::string, std::vector<std::string>> kAllowed{
    {"include/fovea", {}},
    {"src/core", {"fovea"}},
    {"src/device", {"core", "fovea"}},
    {"src/ops", {"core", "device", "fovea"}},
    {"src/checkpoint", {"core", "fovea"}},
    {"src/media", {"core", "fovea"}},
    {"src/models", {"core", "device", "ops", "checkpoint", "media", "fovea"}},
    {"src/graph",
     {"core", "device", "models/encoder_graph_model.h", "ops/context.h", "ops/cost_kernels.h",
      "fovea"}},
    {"src/cache", {"core", "device", "ops", "fovea"}},
    {"src/engine",
     {"core", "device", "ops", "checkpoint", "media", "models", "graph", "cache", "fovea"}},
    {"apps", {"fovea"}},
    {"examples", {"fovea"}},
};

/// The header of an `#include "..."` line.
std::optional<std::string> included_header(const std::string& line) {
  constexpr std::string_view kStart = "#include \"";
  if (!line.starts_with(kStart)) return std::nullopt;
  return line.substr(kStart.size(), line.find('"', kStart.size()) - kStart.size());
}

std::string room_of(const std::string& header) {
  const std::size_t slash = header.find('/');
  return slash == std::string::npos ? "" : header.substr(0, slash);
}

bool may_include(const std::string& folder, const std::string& header) {
  const std::string room = room_of(header);
  if (room.empty()) return folder == "apps";  // a program's own headers stand beside its sources
  if (folder.ends_with("/" + room)) return true;
  return std::ranges::any_of(kAllowed.at(folder), [&](const std::string& allowed) {
    return allowed == room || allowed == header;
  });
}

TEST(IncludeArrows, PointDownwards) {
  for (const auto& [folder, allowed] : kAllowed) {
    if (!std::filesystem::exists(source_root() / folder)) continue;
    for (const std::string& file : files_below(folder, {".h", ".cpp", ".cu", ".cuh"})) {
      for (const std::string& line : read_lines(file)) {
        if (const auto header = included_header(line)) {
          EXPECT_TRUE(may_include(folder, *header)) << file << ": " << line;
        }
      }
    }
  }
}

TEST(IncludeArrows, CudaHeadersStayInCudaFolders) {
  for (const std::string& file : files_below("src", {".h", ".cpp", ".cu", ".cuh"})) {
    if (file.find("/cuda/") != std::string::npos) continue;
    for (const std::string& line : read_lines(file)) {
      if (const auto header = included_header(line)) {
        EXPECT_EQ(header->find("/cuda/"), std::string::npos) << file << ": " << line;
      }
    }
  }
}

TEST(IncludeArrows, EveryRoomIsListed) {
  for (const auto& entry : std::filesystem::directory_iterator(source_root() / "src")) {
    if (!entry.is_directory()) continue;
    EXPECT_TRUE(kAllowed.contains("src/" + entry.path().filename().string())) << entry.path();
  }
}

}  // namespace
}  // namespace fovea::test
