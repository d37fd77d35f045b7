#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fovea/embedding.h"
#include "shards/item_index.h"
#include "shards/manifest.h"
#include "shards/manifest_file.h"

namespace fovea::cli {

/// The files of a shard while it is encoded: parts, and the manifest that says what they hold. A
/// process that is killed at any moment leaves whole parts; one that the manifest does not know is
/// removed by the next run.
class ShardFolder {
 public:
  /// Takes the manifest of `wanted.shard` in `folder`, which is made if it is not there, and
  /// compares what it was made with, except for the fingerprint. Changes nothing yet.
  /// @param resume whether there may be a manifest with something in it.
  /// @throws Error(kUnavailable) if another process has the shard, Error(kInvalidArgument) if the
  /// folder holds something that this run may not go on with, Error(kCorruptData), Error(kIo).
  ShardFolder(std::string folder, ManifestHeader wanted, bool resume);

  /// Compares the fingerprint, removes what killed processes left, and begins the manifest, or
  /// says in it which parts are lost.
  /// @throws Error(kInvalidArgument) for rows of another model, Error(kIo).
  void begin(const std::string& fingerprint);

  /// Whether the manifest has rows of a file that was as it is now.
  [[nodiscard]] bool has(const PathDigest& digest, std::int64_t size, std::int64_t mtime_ns) const;
  /// Whether the manifest has rows of an item, whatever has become of its file.
  [[nodiscard]] bool has(const PathDigest& digest) const;
  /// Whether the shard has rows of any item.
  [[nodiscard]] bool has_rows() const noexcept { return has_rows_; }

  /// Writes a part and the lines of its items; items that failed have a line alone. The members
  /// that say where the rows are need not be filled in.
  /// @param rows of the items without an error, in their order.
  /// @return bytes of the part. @throws Error(kIo); the manifest is then as it was.
  std::int64_t add_part(std::vector<ItemLine> items, const std::vector<Embedding>& rows);
  /// Says that the whole list was worked off.
  void finish(const DoneLine& done);

 private:
  struct Part {
    std::int64_t bytes = 0;
    bool lost = false;
  };

  [[nodiscard]] std::string path_of(std::int64_t part) const;
  void read();
  void take_part(const PartLine& part, const std::vector<ItemLine>& items);
  void compare_options(const ManifestHeader& found) const;
  void drop_lost_parts();
  void remove_unknown_parts() const;
  [[nodiscard]] std::vector<std::int64_t> parts_there() const;

  std::string folder_;
  ManifestHeader wanted_;
  std::string manifest_path_;
  ManifestFile manifest_;
  ManifestEnd end_;
  std::map<std::int64_t, Part> parts_;
  ItemIndex index_;
  std::int64_t lines_ = 0;
  bool has_rows_ = false;
};

}  // namespace fovea::cli
