#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fovea::test {

/// The root of the source tree.
[[nodiscard]] std::filesystem::path source_root();

/// Files below `folder` (relative to the root) with one of the extensions, as paths relative to the
/// root, in ascending order. Hidden folders, build and output folders are left out.
[[nodiscard]] std::vector<std::string> files_below(const std::string& folder,
                                                   const std::vector<std::string>& extensions);

/// Content of a file of the tree.
[[nodiscard]] std::string read_text(const std::string& file);

/// Content split at line breaks.
[[nodiscard]] std::vector<std::string> read_lines(const std::string& file);

}  // namespace fovea::test
