#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inputs.h"
#include "shards/shard.h"

namespace fovea::cli {

/// The paths of a shard, each once. The list is read twice, so that only 16 bytes of each path are
/// in memory: once by the constructor, which finds what is wrong in it before any work, and once by
/// for_each().
class ShardList {
 public:
  /// @param arguments images alone. A line of @FILE is the path of a file, whatever it holds:
  /// nothing is looked up, no pattern is matched. Blanks around it, empty lines, lines that begin
  /// with # and relative paths are as for expand_inputs().
  /// @throws as expand_inputs() says of arguments, Error(kInvalidArgument) for a path that is not
  /// UTF-8 or too long, which the manifest could not hold, UsageError for "-".
  ShardList(std::span<const InputArgument> arguments, const Shard& shard, CallBounds bounds);

  /// Paths of the shard, and of all shards; copies count once in the first, each in the second.
  [[nodiscard]] std::int64_t size() const noexcept { return std::ssize(digests_); }
  [[nodiscard]] std::int64_t listed() const noexcept { return listed_; }

  /// Calls `use` with every path of the shard, in the order of the list, until it throws. Once.
  using Use = std::function<void(const std::string& path, const PathDigest& digest)>;
  void for_each(const Use& use);

 private:
  void for_each_listed(const std::function<void(const std::string& path)>& use) const;

  std::vector<InputArgument> arguments_;
  Shard shard_;
  CallBounds bounds_;
  std::int64_t listed_ = 0;
  std::vector<PathDigest> digests_;  // sorted
  std::vector<bool> used_;           // for each of them
};

}  // namespace fovea::cli
