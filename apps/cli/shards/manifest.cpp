// Lines of manifests, and which of them count.
#include "shards/manifest.h"

#include <algorithm>
#include <utility>

#include "core/json.h"
#include "core/json_writer.h"
#include "fovea/error.h"
#include "fovea/version.h"
#include "shards/lines.h"

namespace fovea::cli {
namespace {

/// The version of the format; another one is refused.
constexpr std::int64_t kVersion = 3;

/// The members that all shards of a folder have in common.
JsonObject common_json(const ManifestHeader& header) {
  return {{"shards", header.shard.count},
          {"model", header.model},
          {"fingerprint", header.fingerprint},
          {"options", header.options},
          {"fovea_version", version()}};
}

JsonObject json_of(const ManifestHeader& header) {
  return JsonObject{{"fovea_manifest", kVersion}, {"shard", header.shard.index}}.merge(
      common_json(header));
}

/// The text, or null for an empty one.
std::optional<std::string> or_null(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

/// JSON that is there already; null for an empty text.
struct JsonOrNull {
  std::string_view text;
  void append_to(std::string& out) const { out += text.empty() ? "null" : text; }
};

JsonObject json_of(const ItemLine& item) {
  const bool failed = !item.error.empty();
  return {{"path", item.name.path},
          {"type", to_string(item.name.modality)},
          {"options", JsonOrNull{item.name.options}},
          {"size", item.size},
          {"mtime", item.mtime_ns},
          {"file", or_null(failed ? "" : item.file)},
          {"tensor", or_null(failed ? "" : item.tensor)},
          {"rows", item.rows},
          {"width", item.width},
          {"grid", item.grid_thw},
          {"key", or_null(item.key)},
          {"error", or_null(item.error)}};
}

JsonObject json_of(const PartLine& part) {
  return {{"part", or_null(part.file)}, {"bytes", part.bytes}, {"items", part.items}};
}

JsonObject json_of(const LostLine& lost) { return {{"lost", lost.file}}; }

JsonObject json_of(const DoneLine& done) { return {{"done", done.items}}; }

/// Whether there is a member of this name, null or not.
bool has(const JsonView& json, std::string_view key) {
  const std::vector<std::string_view> keys = json.keys();
  return std::ranges::find(keys, key) != keys.end();
}

/// A member, absent for null. @throws Error(kCorruptData) if there is none.
std::optional<JsonView> member_of(const JsonView& json, std::string_view key) {
  if (!has(json, key)) throw Error(ErrorCode::kCorruptData, std::string(key) + " is missing");
  return json.find(key);
}

/// A text, empty for null.
std::string text_at(const JsonView& json, std::string_view key) {
  const std::optional<JsonView> value = member_of(json, key);
  return value ? value->as_string() : "";
}

std::int64_t whole_number(const JsonView& json, std::string_view key) {
  const std::optional<JsonView> value = member_of(json, key);
  if (value && value->integer()) return *value->integer();
  throw Error(ErrorCode::kCorruptData, std::string(key) + " is no whole number");
}

/// A number that counts something.
std::int64_t count_at(const JsonView& json, std::string_view key) {
  const std::int64_t value = whole_number(json, key);
  if (value < 0) throw Error(ErrorCode::kCorruptData, std::string(key) + " is below 0");
  return value;
}

std::optional<std::array<std::int64_t, 3>> grid_at(const JsonView& json, std::string_view key) {
  const std::optional<JsonView> value = member_of(json, key);
  if (!value) return std::nullopt;
  std::array<std::int64_t, 3> grid{};
  if (value->num_elements() != grid.size()) {
    throw Error(ErrorCode::kCorruptData, "grid is not of 3 numbers");
  }
  for (std::size_t i = 0; i < grid.size(); ++i) grid[i] = value->element(i).as_int();
  return grid;
}

std::map<std::string, std::string> texts_at(const JsonView& json, std::string_view key) {
  const JsonView object = json.at(key);
  std::map<std::string, std::string> texts;
  for (const std::string_view name : object.keys()) texts.emplace(name, text_at(object, name));
  return texts;
}

ManifestHeader header_from(const JsonView& json) {
  const auto format = whole_number(json, "fovea_manifest");
  if (format != kVersion) {
    throw Error(ErrorCode::kCorruptData,
                "expected format " + std::to_string(kVersion) + ", got " + std::to_string(format) +
                    ", that of another version of fovea, which can go on with it");
  }
  ManifestHeader header{
      .shard = {.index = count_at(json, "shard"), .count = count_at(json, "shards")},
      .model = text_at(json, "model"),
      .fingerprint = text_at(json, "fingerprint"),
      .options = texts_at(json, "options")};
  if (header.shard.index >= header.shard.count) {
    throw Error(ErrorCode::kCorruptData, "expected a shard below the number of shards");
  }
  return header;
}

Modality modality_at(const JsonView& json, std::string_view key) {
  const std::string name = text_at(json, key);
  for (const Modality modality : {Modality::kImage, Modality::kVideo}) {
    if (name == to_string(modality)) return modality;
  }
  throw Error(ErrorCode::kCorruptData, std::string(key) + " is neither image nor video");
}

/// An object as JSON, empty for null.
std::string object_at(const JsonView& json, std::string_view key) {
  const std::optional<JsonView> value = member_of(json, key);
  if (!value) return "";
  if (!value->is_object()) throw Error(ErrorCode::kCorruptData, std::string(key) + " is no object");
  return to_json_text(*value);
}

ItemLine item_from(const JsonView& json) {
  ItemLine item{.name = {.path = text_at(json, "path"),
                         .modality = modality_at(json, "type"),
                         .options = object_at(json, "options")},
                .size = count_at(json, "size"),
                .mtime_ns = whole_number(json, "mtime"),
                .file = text_at(json, "file"),
                .tensor = text_at(json, "tensor"),
                .rows = count_at(json, "rows"),
                .width = count_at(json, "width"),
                .grid_thw = grid_at(json, "grid"),
                .key = text_at(json, "key"),
                .error = text_at(json, "error")};
  if (item.error.empty() == (item.file.empty() || item.tensor.empty())) {
    throw Error(ErrorCode::kCorruptData, "expected rows in a file or an error");
  }
  return item;
}

ManifestLine line_from(const JsonView& json) {
  if (has(json, "path")) return item_from(json);
  if (has(json, "part")) {
    return PartLine{.file = text_at(json, "part"),
                    .bytes = count_at(json, "bytes"),
                    .items = count_at(json, "items")};
  }
  if (has(json, "lost")) return LostLine{.file = text_at(json, "lost")};
  if (has(json, "done")) return DoneLine{.items = count_at(json, "done")};
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
  return std::visit([](const auto& known) { return to_json_text(json_of(known)); }, line);
}

std::string merged_header(const ManifestHeader& header) {
  return to_json_text(JsonObject{{"fovea_manifest", kVersion}}.merge(common_json(header)));
}

ManifestLine parse_manifest_line(std::string_view text, const std::string& place) {
  try {
    return line_from(JsonDocument::parse(text, "line").root());
  } catch (const Error& error) {
    throw Error(ErrorCode::kCorruptData,
                place + ": expected a line of a manifest of fovea: " + error.what());
  }
}

ManifestEnd read_manifest(const std::string& path, const ManifestVisitor& visitor) {
  return Reading(path, visitor).run();
}

}  // namespace fovea::cli
