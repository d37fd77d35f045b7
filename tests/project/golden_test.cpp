// Golden data is data: what the tests compare with is what the reference wrote.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/sha256.h"
#include "project/tree.h"

namespace fovea::test {
namespace {

namespace fs = std::filesystem;

/// Folders below tests/golden that have a manifest.
std::vector<fs::path> manifest_folders() {
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(FOVEA_TEST_GOLDEN_DIR)) {
    if (fs::exists(entry.path() / "manifest.json")) folders.push_back(entry.path());
  }
  return folders;
}

std::string sha256_of_file(const fs::path& path) {
  return fovea::sha256_hex(read_text(fs::relative(path, source_root()).string()));
}

std::set<std::string> files_of(const fs::path& folder) {
  std::set<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.insert(fs::relative(entry.path(), folder).string());
  }
  files.erase("manifest.json");
  return files;
}

TEST(Golden, FilesAreThoseOfTheManifests) {
  const std::vector<fs::path> folders = manifest_folders();
  EXPECT_FALSE(folders.empty());
  for (const fs::path& folder : folders) {
    const JsonDocument manifest = JsonDocument::read((folder / "manifest.json").string());
    EXPECT_FALSE(manifest.root().at("producer").as_string().empty()) << folder;
    const JsonView files = manifest.root().at("files");
    std::set<std::string> listed;
    for (const std::string_view name : files.keys()) {
      listed.emplace(name);
      ASSERT_TRUE(fs::exists(folder / name)) << folder / name;
      EXPECT_EQ(sha256_of_file(folder / name), files.at(name).at("sha256").as_string())
          << folder / name << ": see tests/golden/README.md";
    }
    EXPECT_EQ(listed, files_of(folder)) << folder << ": see tests/golden/README.md";
  }
}

}  // namespace
}  // namespace fovea::test
