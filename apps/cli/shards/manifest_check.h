#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "shards/manifest.h"

namespace fovea::cli {

/// Counts of the files of a shard, and of what is wrong with them.
struct ShardState {
  Shard shard;
  std::int64_t items = 0;   ///< with rows, each counted once
  std::int64_t failed = 0;  ///< whose last line is an error
  std::int64_t parts = 0;
  std::int64_t bytes = 0;  ///< of all parts
  std::int64_t problems = 0;
};

/// The state of all shards of a folder together.
struct FolderState {
  std::optional<ManifestHeader> header;  ///< of the first shard; the others are made likewise
  std::vector<ShardState> shards;        ///< that have a manifest, ascending
  std::int64_t problem_count = 0;
  std::vector<std::string> problems;  ///< the first kMostProblems, with the names of their files
  static constexpr std::int64_t kMostProblems = 20;
};

/// Reads all manifests of a folder, and the headers of all parts. Changes nothing. Wrong are:
/// manifests that cannot be read, end in the middle, do not say that their list was worked off, or
/// were made with another model or other options than the first; shards that are missing; parts
/// that are missing, of another size, no safetensors files, without a tensor that a line names or
/// with one that none does; files in two lines, or in a shard that they do not belong to.
/// Memory: 48 bytes for each item of one shard.
/// @throws Error(kNotFound) if there is no manifest in the folder, Error(kIo).
[[nodiscard]] FolderState check_manifests(const std::string& folder);

/// Says what is wrong with a part, its name in front; absent if it is a safetensors file of the
/// size written down that holds the rows of exactly these items. Reads its header.
[[nodiscard]] std::optional<std::string> problem_of_part(const std::string& path,
                                                         const PartLine& part,
                                                         const std::vector<ItemLine>& items);

/// Writes what all manifests of a folder say last about each file, sorted by path, behind one line
/// with the number of shards, the model and the options. Complete or not at all. Memory: the paths
/// of all items, and 50 bytes for each.
/// @param state of the folder, without problems.
/// @return items written. @throws Error(kIo), Error(kCorruptData) if the manifests change
/// meanwhile.
std::int64_t merge_manifests(const std::string& folder, const FolderState& state,
                             const std::string& output);

}  // namespace fovea::cli
