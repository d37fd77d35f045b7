#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea {

/// Limits of a JSON file. The largest published checkpoint index has some 400,000 values and keys,
/// the deepest published configuration 8 levels.
inline constexpr std::size_t kMaxJsonBytes = 100'000'000;
inline constexpr std::size_t kMaxJsonValues = 4'000'000;
inline constexpr std::size_t kMaxJsonDepth = 64;
inline constexpr std::size_t kMaxJsonKeyBytes = 1'000;
inline constexpr std::size_t kMaxJsonStringBytes = 32'000'000;

/// Most of what a text may hold. Memory for it follows: a value or key takes 16 bytes, twice while
/// the text is read, and a string takes as many as the text has of it if it holds an escape, or
/// none.
struct JsonLimits {
  std::size_t bytes = kMaxJsonBytes;    ///< at most 2^32 - 1
  std::size_t values = kMaxJsonValues;  ///< keys count, too
  std::size_t depth = kMaxJsonDepth;
  std::size_t key_bytes = kMaxJsonKeyBytes;
  std::size_t string_bytes = kMaxJsonStringBytes;  ///< as they stand in the text, without quotes
};

/// The meaning of a key that occurs twice in one object.
enum class DuplicateKeys {
  kLastWins,  ///< as in Python, whose readers the configuration files were written for
  kReject,    ///< for formats in which a second meaning would be an attack
};

/// How a text is read.
struct JsonRules {
  DuplicateKeys duplicates = DuplicateKeys::kLastWins;
  /// NaN, Infinity and -Infinity, which Python writes into configuration files, are read as null.
  bool non_finite = true;
  bool comments = false;  ///< of C++, which people write into configuration files, are skipped
  JsonLimits limits = {};
};

namespace detail {
struct JsonNode;  // one value of the parsed tree
struct JsonTree;  // the tree with the name of the text
}  // namespace detail

/// A value inside a parsed document. It knows the path that leads to it, so that every error names
/// file and key: `config.json: vision_config.num_heads: expected an integer, got "16"`.
/// Two pointers, valid as long as the document. Thread-safe.
class JsonView {
 public:
  /// "file: a.b[2].c" for messages; "file" for the root. Long keys are cut.
  [[nodiscard]] std::string path() const;
  /// The value as messages show it: `"16"` (long strings are cut), `2.5`, `null`, `an object`.
  [[nodiscard]] std::string summary() const;
  [[nodiscard]] bool is_object() const noexcept;
  [[nodiscard]] bool is_array() const noexcept;
  [[nodiscard]] bool is_string() const noexcept;
  [[nodiscard]] bool is_number() const noexcept;
  /// A number written without fraction and exponent that fits into 64 bits.
  [[nodiscard]] bool is_integer() const noexcept;
  /// The integer if it is one of at most 63 bits.
  [[nodiscard]] std::optional<std::int64_t> integer() const noexcept;
  /// The same, or the value of a number with a fraction or an exponent that is whole: 2.0, 1e3.
  [[nodiscard]] std::optional<std::int64_t> whole() const noexcept;
  [[nodiscard]] bool is_bool() const noexcept;
  [[nodiscard]] bool is_null() const noexcept;

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
  /// One of them. @param i below num_elements(). @throws as elements.
  [[nodiscard]] JsonView element(std::size_t i) const;
  /// Keys of an object in file order, each once; valid as long as the document.
  /// @throws Error(kCorruptData) if this is not an object.
  [[nodiscard]] std::vector<std::string_view> keys() const;
  /// Number of the members of an object, nulls included, each key once. @throws as keys.
  [[nodiscard]] std::size_t num_members() const;
  /// Key and value of one of them, in file order. @param i below num_members(). @throws as keys.
  [[nodiscard]] std::string_view key(std::size_t i) const;
  [[nodiscard]] JsonView member(std::size_t i) const;

  /// Typed values. @throws Error(kCorruptData) on another type and for integers beyond 63 bits;
  /// as_int also accepts 2.0 but not 2.5.
  [[nodiscard]] std::int64_t as_int() const;
  [[nodiscard]] double as_number() const;
  [[nodiscard]] bool as_bool() const;
  [[nodiscard]] std::string as_string() const;
  /// The string where it lies: valid as long as the document, and as the text of parse_borrowed().
  [[nodiscard]] std::string_view as_text() const;

  /// Member with a default for absence; a wrong type is still an error.
  [[nodiscard]] std::int64_t int_or(std::string_view key, std::int64_t fallback) const;
  [[nodiscard]] double number_or(std::string_view key, double fallback) const;
  [[nodiscard]] bool bool_or(std::string_view key, bool fallback) const;
  [[nodiscard]] std::string string_or(std::string_view key, std::string fallback) const;

  /// The members of the objects in a text: as they came, or in the order of their names.
  enum class Members { kInFileOrder, kByName };
  /// Appends the value as JSON on one line, for json_writer.h.
  void append_to(std::string& out, Members order = Members::kInFileOrder) const;

 private:
  friend class JsonDocument;

  JsonView(const detail::JsonNode& node, const detail::JsonTree& tree)
      : node_(&node), tree_(&tree) {}

  [[nodiscard]] std::string member_path(std::string_view key) const;
  [[noreturn]] void fail(std::string_view expected) const;

  const detail::JsonNode* node_;
  const detail::JsonTree* tree_;
};

/// A parsed JSON text, which nothing changes: copies share it. Reading takes time linear in its
/// length (but for the keys of an object, which are sorted), and ends early under an Interrupt.
/// Source: RFC 8259.
class JsonDocument {
 public:
  /// Parses a copy of the text. @param name of the text, for messages.
  /// @throws Error(kCorruptData) with line and column if the text is not JSON or beyond a limit;
  /// Error(kCancelled) or Error(kDeadline) under an Interrupt.
  [[nodiscard]] static JsonDocument parse(std::string_view text, std::string name,
                                          DuplicateKeys duplicates = DuplicateKeys::kLastWins);
  /// As above by rules of the caller, without a copy. @param text must outlive the document.
  [[nodiscard]] static JsonDocument parse_borrowed(std::string_view text, std::string name,
                                                   const JsonRules& rules);
  /// Parses a file; its path is the name. @throws Error(kNotFound), Error(kIo),
  /// Error(kInvalidArgument) if it is larger than the limit, Error(kCorruptData).
  [[nodiscard]] static JsonDocument read(const std::string& path, const JsonRules& rules = {});

  /// Valid as long as a copy of the document.
  [[nodiscard]] JsonView root() const;

 private:
  explicit JsonDocument(std::shared_ptr<const detail::JsonTree> tree) : tree_(std::move(tree)) {}

  std::shared_ptr<const detail::JsonTree> tree_;
};

}  // namespace fovea
