#pragma once

#include <cstdint>
#include <string>

#include "shards/manifest_check.h"

namespace fovea::cli {

/// Writes what all manifests of a folder say last about each file, sorted by path, behind one line
/// with the number of shards, the model and the options. Complete or not at all. Memory: the paths
/// of all items, and 50 bytes for each.
/// @param state of the folder, without problems.
/// @return items written. @throws Error(kIo), Error(kCorruptData) if the manifests change
/// meanwhile.
std::int64_t merge_manifests(const std::string& folder, const FolderState& state,
                             const std::string& output);

}  // namespace fovea::cli
