#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fovea/media.h"

namespace fovea::cli {

/// 16 bytes of the SHA-256 of an item's name, by which it is recognised among many.
using PathDigest = std::array<std::uint64_t, 2>;

/// The SHA-256 of a path or name, as far as it is used here.
struct PathHash {
  std::uint64_t number = 0;  ///< bytes 0 to 7, big-endian
  PathDigest digest{};       ///< bytes 8 to 23
};

/// Depends on the bytes of the path alone, so that whoever has `sha256sum` can say where a path
/// belongs.
[[nodiscard]] PathHash hash_of_path(std::string_view path);

/// An item of a list, as runs tell it from others.
struct ItemName {
  std::string path;
  Modality modality = Modality::kImage;
  std::string options;  ///< of its own, ListedItem::options()

  /// The path alone for an image without options; sorted by it, items are sorted by their paths.
  [[nodiscard]] std::string text() const;
};

/// The number is that of the path, so that all items of a path are in one shard; the digest is that
/// of the whole name.
[[nodiscard]] PathHash hash_of_item(const ItemName& item);

/// One of the parts that a list of files is divided into.
struct Shard {
  std::int64_t index = 0;
  std::int64_t count = 1;

  /// Every path belongs to exactly one of `count` shards, whatever else is in the list.
  [[nodiscard]] bool holds(const PathHash& hash) const {
    return hash.number % static_cast<std::uint64_t>(count) == static_cast<std::uint64_t>(index);
  }
  friend bool operator==(const Shard&, const Shard&) = default;
};

/// Reads "3/16": the fourth of sixteen. @throws UsageError naming `what` for anything else.
[[nodiscard]] Shard parse_shard(std::string_view text, std::string_view what);

/// "manifest-3-of-16.jsonl".
[[nodiscard]] std::string manifest_name(const Shard& shard);
/// The shard of a file that is called as above; absent for other names.
[[nodiscard]] std::optional<Shard> shard_of_manifest(std::string_view name);

/// "part-3-of-16-00000.safetensors".
[[nodiscard]] std::string part_name(const Shard& shard, std::int64_t number);
/// The number of a part of this shard; absent for other names.
[[nodiscard]] std::optional<std::int64_t> part_number(const Shard& shard, std::string_view name);

}  // namespace fovea::cli
