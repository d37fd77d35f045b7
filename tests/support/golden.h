#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace fovea::test {

/// Folders that hold a folder of reference data per family: the selection in the repository, and
/// the full set when FOVEA_GOLDEN_DIR names one.
inline std::vector<std::string> golden_roots() {
  std::vector<std::string> roots{FOVEA_TEST_GOLDEN_DIR};
  if (const char* full = std::getenv("FOVEA_GOLDEN_DIR"); full != nullptr) roots.emplace_back(full);
  return roots;
}

/// Names of the folders in one of the roots that hold `file`, ascending.
inline std::vector<std::string> golden_families(const std::string& root, const std::string& file) {
  std::vector<std::string> families;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (std::filesystem::exists(entry.path() / file))
      families.push_back(entry.path().filename().string());
  }
  std::ranges::sort(families);
  return families;
}

/// Folders with reference data of one family, in the order of the roots. Only folders that hold
/// `file` are listed.
inline std::vector<std::string> golden_folders(const std::string& family, const std::string& file) {
  std::vector<std::string> folders;
  for (const std::string& root : golden_roots()) {
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

/// The folders of the selection that hold a checkpoint, whatever its family.
inline std::vector<std::string> golden_models() {
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(FOVEA_TEST_GOLDEN_DIR)) {
    if (std::filesystem::exists(entry.path() / "model.safetensors")) {
      folders.push_back(entry.path().string());
    }
  }
  return folders;
}

}  // namespace fovea::test
