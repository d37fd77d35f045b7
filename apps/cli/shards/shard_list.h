#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inputs.h"
#include "shards/shard.h"

namespace fovea::cli {

/// The items of a shard, each once. The list is read twice, so that only 16 bytes of each item are
/// in memory: once by the constructor, which finds what is wrong in it before any work, and once by
/// for_each().
class ShardList {
 public:
  /// @param arguments images and videos. A line of @FILE is read as listed_item() does; a path is
  /// that of one item, whatever it holds: nothing is looked up, no pattern is matched.
  /// @throws as expand_inputs() says of arguments, Error(kInvalidArgument) for a line of JSON that
  /// is none of an item and a path that is not UTF-8 or too long, which the manifest could not
  /// hold, UsageError for "-".
  ShardList(std::span<const InputArgument> arguments, const Shard& shard, CallBounds bounds);

  /// Items of the shard, and of all shards; copies count once in the first, each in the second.
  [[nodiscard]] std::int64_t size() const noexcept { return std::ssize(digests_); }
  [[nodiscard]] std::int64_t listed() const noexcept { return listed_; }

  /// Of the items of the shard those that `is_wanted` says true of.
  [[nodiscard]] std::int64_t count_if(
      const std::function<bool(const PathDigest& digest)>& is_wanted) const {
    return std::count_if(digests_.begin(), digests_.end(), is_wanted);
  }

  /// Calls `use` with every item of the shard, in the order of the list, until it throws. Once.
  using Use = std::function<void(const ListedItem& item, const PathDigest& digest)>;
  void for_each(const Use& use);
  /// @throws Error(kInvalidArgument) if for_each() did not find all of them in the list any more.
  void require_all_used() const;

 private:
  void for_each_listed(const std::function<void(const ListedItem& item)>& use) const;

  std::vector<InputArgument> arguments_;
  Shard shard_;
  CallBounds bounds_;
  std::int64_t listed_ = 0;
  std::vector<PathDigest> digests_;  // sorted
  std::vector<bool> used_;           // for each of them
};

/// What a manifest calls the item of a line.
[[nodiscard]] ItemName name_of(const ListedItem& item);

}  // namespace fovea::cli
