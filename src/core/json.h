#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

/// Limits of a JSON text. The largest published checkpoint index has some 200,000 values, the
/// deepest published configuration 8 levels.
inline constexpr std::size_t kMaxJsonBytes = 100'000'000;
inline constexpr std::size_t kMaxJsonValues = 4'000'000;
inline constexpr std::size_t kMaxJsonDepth = 64;
inline constexpr std::size_t kMaxJsonKeyBytes = 1'000;
inline constexpr std::size_t kMaxJsonStringBytes = 32'000'000;

namespace detail {
struct JsonNode;  // one value of the parsed tree; hides the JSON library from headers
struct JsonTree;  // the tree with the name of the text
}  // namespace detail

/// A value inside a parsed document. It knows the path that leads to it, so that every error names
/// file and key: `config.json: vision_config.num_heads: expected an integer, got "16"`.
/// Two pointers, valid as long as the document. Thread-safe.
class JsonView {
 public:
  /// "file: a.b[2].c" for messages; "file" for the root. Long keys are cut.
  [[nodiscard]] std::string path() const;
  [[nodiscard]] bool is_object() const noexcept;
  [[nodiscard]] bool is_array() const noexcept;
  [[nodiscard]] bool is_string() const noexcept;
  [[nodiscard]] bool is_number() const noexcept;
  /// A number written without fraction and exponent that fits into 64 bits.
  [[nodiscard]] bool is_integer() const noexcept;

  /// Whether both have the same values, whatever the order of members and the spelling of numbers.
  [[nodiscard]] bool equals(const JsonView& other) const;

  /// Member of an object, absent if there is none or it is null.
  /// @throws Error(kCorruptData) if this is not an object.
  [[nodiscard]] std::optional<JsonView> find(std::string_view key) const;
  /// @throws Error(kCorruptData) also if the member is absent or null.
  [[nodiscard]] JsonView at(std::string_view key) const;
  /// Elements of an array, nulls included. @throws Error(kCorruptData) if this is not an array.
  [[nodiscard]] std::vector<JsonView> elements() const;
  /// Their number. @throws as elements.
  [[nodiscard]] std::size_t num_elements() const;
  /// Keys of an object in file order, each once; valid as long as the document.
  /// @throws Error(kCorruptData) if this is not an object.
  [[nodiscard]] std::vector<std::string_view> keys() const;

  /// Typed values. @throws Error(kCorruptData) on another type and for integers beyond 63 bits;
  /// as_int also accepts 2.0 but not 2.5.
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
  friend class JsonDocument;

  JsonView(const detail::JsonNode& node, const detail::JsonTree& tree)
      : node_(&node), tree_(&tree) {}

  [[nodiscard]] std::string member_path(std::string_view key) const;
  [[noreturn]] void fail(std::string_view expected) const;

  const detail::JsonNode* node_;
  const detail::JsonTree* tree_;
};

/// What a key that occurs twice in one object means.
enum class DuplicateKeys {
  kLastWins,  ///< as in Python, whose readers the configuration files were written for
  kReject,    ///< for formats in which a second meaning would be an attack
};

/// A parsed JSON text. NaN, Infinity and -Infinity, which some published configuration files
/// contain, are read as null. Size, number of values, nesting and lengths are bounded by the
/// constants above.
class JsonDocument {
 public:
  /// @param name of the text, for messages.
  /// @throws Error(kCorruptData) with line and column if the text is not JSON or beyond a limit.
  [[nodiscard]] static JsonDocument parse(std::string_view text, std::string name,
                                          DuplicateKeys duplicates = DuplicateKeys::kLastWins);
  /// Parses a file; its path is the name. @throws Error(kNotFound), Error(kIo),
  /// Error(kInvalidArgument) if it is larger than kMaxJsonBytes, Error(kCorruptData).
  [[nodiscard]] static JsonDocument read(const std::string& path);

  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();

  [[nodiscard]] JsonView root() const;

 private:
  explicit JsonDocument(std::unique_ptr<detail::JsonTree> tree);

  std::unique_ptr<detail::JsonTree> tree_;  // on the heap: views stay valid when this is moved
};

/// The text as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_quote(std::string_view text);
/// The shortest JSON number that reads back as `value`; null if it is not finite.
[[nodiscard]] std::string json_number(double value);

}  // namespace fovea
