#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

namespace detail {
struct JsonNode;  // the parsed tree; hides the JSON library from headers
}

/// A value inside a parsed document, with the path that leads to it, so that every complaint names
/// file and key: `config.json: vision_config.num_heads: expected an integer, got "16"`.
/// Valid as long as the document.
class JsonView {
 public:
  JsonView(const void* node, std::string path) : node_(node), path_(std::move(path)) {}

  /// "file: a.b.c" for messages.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] bool is_object() const noexcept;
  [[nodiscard]] bool is_array() const noexcept;
  [[nodiscard]] bool is_string() const noexcept;
  [[nodiscard]] bool is_number() const noexcept;

  /// Member of an object, absent if there is none or it is null.
  /// @throws Error(kCorruptData) if this is not an object.
  [[nodiscard]] std::optional<JsonView> find(std::string_view key) const;
  /// @throws Error(kCorruptData) also if the member is absent or null.
  [[nodiscard]] JsonView at(std::string_view key) const;
  /// Elements of an array. @throws Error(kCorruptData) if this is not an array.
  [[nodiscard]] std::vector<JsonView> elements() const;
  /// Keys of an object in file order of the parser. @throws Error(kCorruptData) if this is not an
  /// object.
  [[nodiscard]] std::vector<std::string> keys() const;

  /// Typed values. @throws Error(kCorruptData) on another type; as_int also accepts 2.0 but
  /// not 2.5.
  [[nodiscard]] std::int64_t as_int() const;
  [[nodiscard]] double as_number() const;
  [[nodiscard]] bool as_bool() const;
  [[nodiscard]] std::string as_string() const;

  /// Member with a default for absence; a wrong type is still an error.
  [[nodiscard]] std::int64_t int_or(std::string_view key, std::int64_t fallback) const;
  [[nodiscard]] double number_or(std::string_view key, double fallback) const;
  [[nodiscard]] bool bool_or(std::string_view key, bool fallback) const;
  [[nodiscard]] std::string string_or(std::string_view key, std::string fallback) const;

 private:
  const void* node_;
  std::string path_;
};

/// A parsed JSON text. NaN and Infinity, which some published configuration files contain, are read
/// as null. Nesting is bounded.
class JsonDocument {
 public:
  /// @param name of the text, for messages. @throws Error(kCorruptData) with line and column.
  [[nodiscard]] static JsonDocument parse(std::string_view text, std::string name);
  /// @throws Error(kNotFound), Error(kIo), Error(kCorruptData).
  [[nodiscard]] static JsonDocument read(const std::string& path);

  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();

  [[nodiscard]] JsonView root() const;

 private:
  JsonDocument();
  std::unique_ptr<detail::JsonNode> node_;
  std::string name_;
};

}  // namespace fovea
