#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace fovea::test {

/// Folders with reference data of one family: the selection in the repository, and the full set
/// when FOVEA_GOLDEN_DIR names one. Only folders that hold `file` are listed.
inline std::vector<std::string> golden_folders(const std::string& family, const std::string& file) {
  std::vector<std::string> roots{FOVEA_TEST_GOLDEN_DIR};
  if (const char* full = std::getenv("FOVEA_GOLDEN_DIR"); full != nullptr) roots.emplace_back(full);
  std::vector<std::string> folders;
  for (const std::string& root : roots) {
    const std::filesystem::path folder = std::filesystem::path(root) / family;
    if (std::filesystem::exists(folder / file)) folders.push_back(folder.string());
  }
  return folders;
}

/// The first of golden_folders(). @throws std::runtime_error if there is none.
inline std::string golden_folder(const std::string& family, const std::string& file) {
  const std::vector<std::string> folders = golden_folders(family, file);
  if (folders.empty())
    throw std::runtime_error("no " + family + "/" + file + " below " FOVEA_TEST_GOLDEN_DIR);
  return folders.front();
}

}  // namespace fovea::test
