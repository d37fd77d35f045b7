// Reads the source tree that the tests were built from.
#include "project/tree.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace fovea::test {

namespace fs = std::filesystem;

fs::path source_root() { return FOVEA_TEST_SOURCE_DIR; }

std::vector<std::string> files_below(const std::string& folder,
                                     const std::vector<std::string>& extensions) {
  std::vector<std::string> files;
  for (auto entry = fs::recursive_directory_iterator(source_root() / folder);
       entry != fs::recursive_directory_iterator(); ++entry) {
    const fs::path path = fs::relative(entry->path(), source_root());
    const std::string first = path.begin()->string();
    if (entry->is_directory()) {
      if (first.starts_with('.') || first.starts_with("build") || first == "out") {
        entry.disable_recursion_pending();
      }
    } else if (std::ranges::count(extensions, path.extension().string()) > 0) {
      files.push_back(path.string());
    }
  }
  std::ranges::sort(files);
  return files;
}

std::string read_text(const std::string& file) {
  std::ifstream stream(source_root() / file, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot read " + file);
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

std::vector<std::string> read_lines(const std::string& file) {
  std::istringstream text(read_text(file));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

}  // namespace fovea::test
