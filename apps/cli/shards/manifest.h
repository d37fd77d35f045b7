#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "shards/shard.h"

/// The manifest of a shard: JSON lines that are only ever appended (docs/shards.md). Lines of items
/// count from the moment in which the line of their part follows them, so that what a killed
/// process leaves is all of a part or nothing.
namespace fovea::cli {

/// The first line: what all rows of the shard were made with.
struct ManifestHeader {
  Shard shard;
  std::string model;                           ///< name of its directory
  std::string fingerprint;                     ///< Engine::fingerprint()
  std::map<std::string, std::string> options;  ///< those that rows depend on
};

/// The outcome of an item: rows, or an error.
struct ItemLine {
  ItemName name;
  std::int64_t size = 0;      ///< of the file, or of all frames of a folder together
  std::int64_t mtime_ns = 0;  ///< since 1970; of a folder a hash of that and of its frames' state
  std::string file;           ///< part with the rows; empty if there is an error
  std::string tensor;         ///< name in that part
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::optional<std::array<std::int64_t, 3>> grid_thw;
  std::string key;  ///< Embedding::key
  std::string error;
};

/// Ends the lines of a part, or of items that all failed.
struct PartLine {
  std::string file;  ///< empty: none of the items has rows
  std::int64_t bytes = 0;
  std::int64_t items = 0;  ///< lines since the line before of this kind
};

/// A part that was lost: its lines above count no more.
struct LostLine {
  std::string file;
};

/// The whole list was worked off.
struct DoneLine {
  std::int64_t items = 0;  ///< of the list that belong to the shard, each counted once
};

using ManifestLine = std::variant<ManifestHeader, ItemLine, PartLine, LostLine, DoneLine>;

/// Most items of a part: bounds its header, and what a reader holds in memory.
inline constexpr std::int64_t kMaxItemsOfPart = 65'536;

/// A line without its end. Bytes that are not UTF-8 are replaced.
[[nodiscard]] std::string to_text(const ManifestLine& line);
/// The line that begins the manifest of all shards together.
[[nodiscard]] std::string merged_header(const ManifestHeader& header);
/// @throws Error(kCorruptData) for anything that to_text() does not write, `place` in front.
[[nodiscard]] ManifestLine parse_manifest_line(std::string_view text, const std::string& place);

/// Functions that are called while a manifest is read; empty ones are not.
struct ManifestVisitor {
  /// Lines of items that count, and where each begins in the file.
  std::function<void(const PartLine& part, const std::vector<ItemLine>& items,
                     const std::vector<std::int64_t>& offsets)>
      part = {};
  std::function<void(const LostLine&)> lost = {};
};

/// The end of a manifest that has been read.
struct ManifestEnd {
  std::optional<ManifestHeader> header;  ///< absent: the file has no whole line
  std::int64_t bytes = 0;  ///< up to here the lines count; behind it is what a killed process left
  bool torn = false;       ///< there is something behind it
  std::optional<DoneLine> done;  ///< if it is the last line that counts
};

/// Reads a manifest, one part at a time.
/// @throws Error(kNotFound), Error(kIo), Error(kCorruptData) with FILE:LINE for a line that is none
/// of a manifest, unless nothing behind it counts.
ManifestEnd read_manifest(const std::string& path, const ManifestVisitor& visitor);

}  // namespace fovea::cli
