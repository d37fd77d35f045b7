// Lines of manifests, and which of them count.
#include "shards/manifest.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "fovea/error.h"
#include "fovea/version.h"
#include "shards/lines.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Of the format; another one is refused.
constexpr std::int64_t kVersion = 2;

Json json_of(const ManifestHeader& header) {
  return {{"fovea_manifest", kVersion},        {"shard", header.shard.index},
          {"shards", header.shard.count},      {"model", header.model},
          {"fingerprint", header.fingerprint}, {"options", header.options},
          {"fovea_version", version()}};
}

Json json_of(const ItemLine& item) {
  Json json = {{"path", item.path}, {"size", item.size}, {"mtime", item.mtime_ns}};
  const bool failed = !item.error.empty();
  json["file"] = failed ? Json() : Json(item.file);
  json["tensor"] = failed ? Json() : Json(item.tensor);
  json["rows"] = item.rows;
  json["width"] = item.width;
  json["grid"] = item.grid_thw ? Json(*item.grid_thw) : Json();
  json["key"] = item.key.empty() ? Json() : Json(item.key);
  json["error"] = failed ? Json(item.error) : Json();
  return json;
}

Json json_of(const PartLine& part) {
  return {{"part", part.file.empty() ? Json() : Json(part.file)},
          {"bytes", part.bytes},
          {"items", part.items}};
}

Json json_of(const LostLine& lost) { return {{"lost", lost.file}}; }

Json json_of(const DoneLine& done) { return {{"done", done.items}}; }

/// A text, empty for null.
std::string text_at(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? std::string() : value.get<std::string>();
}

std::int64_t whole_number(const Json& value, const char* key) {
  if (value.is_number_integer()) return value.get<std::int64_t>();
  throw Error(ErrorCode::kCorruptData, std::string(key) + " is no whole number");
}

/// A number that counts something.
std::int64_t count_at(const Json& json, const char* key) {
  const std::int64_t value = whole_number(json.at(key), key);
  if (value < 0) throw Error(ErrorCode::kCorruptData, std::string(key) + " is below 0");
  return value;
}

std::optional<std::array<std::int64_t, 3>> grid_from(const Json& json) {
  if (json.is_null()) return std::nullopt;
  std::array<std::int64_t, 3> grid{};
  if (json.size() != grid.size()) throw Error(ErrorCode::kCorruptData, "grid is not of 3 numbers");
  for (std::size_t i = 0; i < grid.size(); ++i) grid[i] = whole_number(json.at(i), "grid");
  return grid;
}

ManifestHeader header_from(const Json& json) {
  const auto format = whole_number(json.at("fovea_manifest"), "fovea_manifest");
  if (format != kVersion) {
    throw Error(ErrorCode::kCorruptData,
                "expected format " + std::to_string(kVersion) + ", got " + std::to_string(format) +
                    ", that of another version of fovea, which can go on with it");
  }
  ManifestHeader header{
      .shard = {.index = count_at(json, "shard"), .count = count_at(json, "shards")},
      .model = text_at(json, "model"),
      .fingerprint = text_at(json, "fingerprint"),
      .options = json.at("options").get<std::map<std::string, std::string>>()};
  if (header.shard.index >= header.shard.count) {
    throw Error(ErrorCode::kCorruptData, "expected a shard below the number of shards");
  }
  return header;
}

ItemLine item_from(const Json& json) {
  ItemLine item{.path = text_at(json, "path"),
                .size = count_at(json, "size"),
                .mtime_ns = whole_number(json.at("mtime"), "mtime"),
                .file = text_at(json, "file"),
                .tensor = text_at(json, "tensor"),
                .rows = count_at(json, "rows"),
                .width = count_at(json, "width"),
                .grid_thw = grid_from(json.at("grid")),
                .key = text_at(json, "key"),
                .error = text_at(json, "error")};
  if (item.error.empty() == (item.file.empty() || item.tensor.empty())) {
    throw Error(ErrorCode::kCorruptData, "expected rows in a file or an error");
  }
  return item;
}

ManifestLine line_from(const Json& json) {
  if (json.contains("path")) return item_from(json);
  if (json.contains("part")) {
    return PartLine{.file = text_at(json, "part"),
                    .bytes = count_at(json, "bytes"),
                    .items = count_at(json, "items")};
  }
  if (json.contains("lost")) return LostLine{.file = text_at(json, "lost")};
  if (json.contains("done")) return DoneLine{.items = count_at(json, "done")};
  return header_from(json);
}

/// Reads lines and hands on what counts.
class Reading {
 public:
  Reading(const std::string& path, const ManifestVisitor& visitor)
      : lines_(path), visitor_(visitor) {}

  ManifestEnd run() {
    std::int64_t begin = 0;
    while (const std::optional<std::string_view> text = lines_.next()) {
      if (!lines_.whole()) break;
      try {
        take(parse_manifest_line(*text, lines_.place()), begin);
      } catch (const Error& error) {
        if (!first_error_) first_error_ = error;
      }
      begin = lines_.end();
    }
    end_.torn = lines_.end() > end_.bytes;
    if (first_error_ && (counts_behind_error_ || !end_.header)) throw *first_error_;
    return end_;
  }

 private:
  void take(ManifestLine line, std::int64_t begin) {
    if (auto* item = std::get_if<ItemLine>(&line)) {
      require(end_.header.has_value(), "expected the line that begins a manifest");
      require(std::ssize(items_) < kMaxItemsOfPart, "expected the end of a part");
      items_.push_back(std::move(*item));
      offsets_.push_back(begin);
      return;
    }
    if (first_error_) {
      counts_behind_error_ = true;  // a killed process leaves nothing wrong but at the end
      return;
    }
    require(std::holds_alternative<ManifestHeader>(line) != end_.header.has_value(),
            "expected one line that begins a manifest, the first");
    std::visit([this](const auto& known) { count(known); }, line);
    end_.done = std::holds_alternative<DoneLine>(line) ? std::optional(std::get<DoneLine>(line))
                                                       : std::nullopt;
    end_.bytes = lines_.end();
  }

  void count(const ManifestHeader& header) { end_.header = header; }
  void count(const ItemLine&) {}
  void count(const LostLine& lost) {
    if (visitor_.lost) visitor_.lost(lost);
  }
  void count(const DoneLine&) {}
  void count(const PartLine& part) {
    require(std::ssize(items_) == part.items, "expected as many lines of items before it");
    for (const ItemLine& item : items_) {
      require(!item.error.empty() || item.file == part.file, "expected items of this part");
    }
    if (visitor_.part) visitor_.part(part, items_, offsets_);
    items_.clear();
    offsets_.clear();
  }

  void require(bool holds, const char* expected) const {
    if (!holds) throw Error(ErrorCode::kCorruptData, lines_.place() + ": " + expected);
  }

  LineReader lines_;
  const ManifestVisitor& visitor_;
  ManifestEnd end_;
  std::vector<ItemLine> items_;  // whose part has not come yet
  std::vector<std::int64_t> offsets_;
  std::optional<Error> first_error_;
  bool counts_behind_error_ = false;
};

}  // namespace

std::string to_text(const ManifestLine& line) {
  // Messages may quote bytes of a file; paths are UTF-8 (ShardList).
  return std::visit(
      [](const auto& known) {
        return json_of(known).dump(-1, ' ', false, Json::error_handler_t::replace);
      },
      line);
}

ManifestLine parse_manifest_line(std::string_view text, const std::string& place) {
  try {
    return line_from(Json::parse(text));
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kCorruptData,
                place + ": expected a line of a manifest of fovea: " + error.what());
  }
}

ManifestEnd read_manifest(const std::string& path, const ManifestVisitor& visitor) {
  return Reading(path, visitor).run();
}

}  // namespace fovea::cli
