#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/json.h"
#include "core/json_node.h"

namespace fovea {

namespace detail {

/// Takes the tokens of a JSON text one after the other. Every function throws Error(kCorruptData)
/// that begins with the name of the text, and where the syntax is wrong with line and column;
/// messages quote nothing of the text.
class JsonLexer {
 public:
  /// @param text strings without escapes refer to it, others to `pool`. @param name must outlive
  /// this object, as `rules` and `pool` must.
  JsonLexer(std::string_view text, std::string_view name, const JsonRules& rules,
            JsonTextPool& pool);

  /// The first character of the next token, behind white space; 0 at the end of the text.
  [[nodiscard]] char peek();
  /// Takes the one character that peek() has shown.
  void skip() noexcept { ++at_; }
  /// Takes a string, a number or a word. @throws also if there is none of them.
  [[nodiscard]] JsonNode scalar();
  /// Takes the key of a member and the colon.
  [[nodiscard]] JsonNode key();
  /// @throws unless only white space follows.
  void expect_end();

  /// Refuses what is not `expected`.
  [[noreturn]] void fail_syntax(std::string_view expected) const;
  /// Refuses what is JSON, but not for this reader.
  [[noreturn]] void fail(std::string_view why) const;

 private:
  [[nodiscard]] char here() const noexcept { return at_ == end_ ? '\0' : *at_; }
  [[nodiscard]] std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  /// Takes a word if it comes next.
  bool take(std::string_view word) noexcept;
  bool skip_comment();
  [[nodiscard]] JsonNode string(std::size_t most, std::string_view what);
  void skip_string(std::size_t most, std::string_view what, bool& has_escape);
  void skip_escape();
  [[nodiscard]] unsigned hex_digits() const;
  void skip_digits();
  [[nodiscard]] JsonNode number();
  [[nodiscard]] JsonNode integer(std::string_view digits) const;
  [[nodiscard]] JsonNode real(std::string_view digits) const;
  [[nodiscard]] std::string_view unescaped(std::string_view raw);

  const char* const begin_;
  const char* at_;
  const char* const end_;
  const std::string_view name_;
  const JsonRules& rules_;
  JsonTextPool& pool_;
};

}  // namespace detail

}  // namespace fovea
