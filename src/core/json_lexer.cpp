// Tokens of JSON. Strings are looked at once, and copied only where an escape stands for something
// else than itself. Source: RFC 8259.
#include "core/json_lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>

#include "core/check.h"
#include "core/interrupt.h"
#include "fovea/text.h"

namespace fovea {

namespace detail {

namespace {

/// Bytes of a string after which the interrupt of the thread is looked at.
constexpr std::size_t kLookBytes = std::size_t{1} << 20;

/// Whether a byte of a string stands for itself, without looking at its neighbours.
constexpr std::array<bool, 256> kIsPlain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t c = 0x20; c < 0x80; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

/// "line 3, column 7" of a byte offset, both counted from 1.
std::string place(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return cat("line ", line, ", column ", before.size() - line_start + 1);
}

/// Appends a character as UTF-8. @return behind it.
char* append_utf8(unsigned code, char* out) {
  const auto tail = [&](unsigned shift) {
    *out++ = static_cast<char>(0x80 | (code >> shift & 63));
  };
  if (code < 0x80) {
    *out++ = static_cast<char>(code);
  } else if (code < 0x800) {
    *out++ = static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    *out++ = static_cast<char>(0xe0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    *out++ = static_cast<char>(0xf0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
  return out;
}

bool is_high_surrogate(unsigned code) { return code >= 0xd800 && code < 0xdc00; }
bool is_low_surrogate(unsigned code) { return code >= 0xdc00 && code < 0xe000; }

/// The number of four hexadecimal digits that have been checked.
unsigned hex_value(const char* digits) {
  unsigned code = 0;
  (void)std::from_chars(digits, digits + 4, code, 16);
  return code;
}

/// Whether a number that no double holds is too near to zero for one, and not too large.
bool is_tiny(std::string_view number) {
  const std::size_t mark = std::min(number.find_first_of("eE"), number.size());
  const std::string_view digits = number.substr(0, mark);
  std::string_view power = number.substr(std::min(mark + 1, number.size()));
  if (power.starts_with('+')) power.remove_prefix(1);
  std::int64_t exponent = 0;
  const auto end = power.data() + power.size();
  if (std::from_chars(power.data(), end, exponent).ec == std::errc::result_out_of_range)
    return power.starts_with('-');
  const auto first = digits.find_first_of("123456789");
  if (first == digits.npos) return true;
  const auto point = static_cast<std::int64_t>(std::min(digits.find('.'), digits.size()));
  return exponent < static_cast<std::int64_t>(first) - point;
}

}  // namespace

JsonLexer::JsonLexer(std::string_view text, std::string_view name, const JsonRules& rules,
                     JsonTextPool& pool)
    : begin_(text.data()),
      at_(text.data()),
      end_(text.data() + text.size()),
      name_(name),
      rules_(rules),
      pool_(pool) {
  (void)take("\xef\xbb\xbf");  // the byte order mark of UTF-8
}

bool JsonLexer::take(std::string_view word) noexcept {
  if (!std::string_view(at_, left()).starts_with(word)) return false;
  at_ += word.size();
  return true;
}

bool JsonLexer::skip_comment() {
  const auto skip_past = [&](std::string_view mark) {
    const std::size_t end = std::string_view(at_, left()).find(mark);
    if (end == std::string_view::npos) {
      at_ = end_;
      return false;
    }
    at_ += end + mark.size();
    return true;
  };
  if (take("//")) return skip_past("\n") || true;
  if (!take("/*")) return false;
  if (!skip_past("*/")) fail_syntax("the end of a comment");
  return true;
}

char JsonLexer::peek() {
  do {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  } while (rules_.comments && here() == '/' && skip_comment());
  return here();
}

void JsonLexer::expect_end() {
  (void)peek();
  if (at_ != end_) fail_syntax("the end of the text");
}

void JsonLexer::fail(std::string_view why) const {
  throw Error(ErrorCode::kCorruptData, cat(name_, ": ", why));
}

void JsonLexer::fail_syntax(std::string_view expected) const {
  const std::string_view text(begin_, static_cast<std::size_t>(end_ - begin_));
  const std::string where = place(text, static_cast<std::size_t>(at_ - begin_));
  if (at_ != end_ && *at_ == '\0') fail(where + ": zero byte");
  fail(cat(where, ": syntax error: expected ", expected, at_ == end_ ? ", but the text ends" : ""));
}

JsonNode JsonLexer::scalar() {
  const char first = here();
  if (first == '"') return string(rules_.limits.string_bytes, "string");
  if (first >= '0' && first <= '9') return number();
  JsonNode node;
  if (take("null")) return node;
  if (rules_.non_finite && (take("NaN") || take("Infinity") || take("-Infinity"))) return node;
  if (first == '-') return number();
  const bool is_true = take("true");
  if (!is_true && !take("false")) fail_syntax("a value");
  node.put(JsonKind::kBool, is_true);
  return node;
}

JsonNode JsonLexer::key() {
  if (peek() != '"') fail_syntax("a key");
  const JsonNode key = string(rules_.limits.key_bytes, "key");
  if (peek() != ':') fail_syntax("':'");
  skip();
  return key;
}

JsonNode JsonLexer::string(std::size_t most, std::string_view what) {
  skip();
  const char* const begin = at_;
  bool has_escape = false;
  skip_string(most, what, has_escape);
  std::string_view text(begin, static_cast<std::size_t>(at_ - begin));
  skip();
  if (has_escape) text = unescaped(text);
  JsonNode node;
  node.put(JsonKind::kString, text.data());
  node.size = static_cast<std::uint32_t>(text.size());
  return node;
}

void JsonLexer::skip_string(std::size_t most, std::string_view what, bool& has_escape) {
  const char* const begin = at_;
  const char* look = at_ + std::min(left(), kLookBytes);
  for (;;) {
    while (at_ != look && kIsPlain[static_cast<unsigned char>(*at_)]) ++at_;
    if (static_cast<std::size_t>(at_ - begin) > most)
      fail(cat(what, " of more than ", most, " bytes"));
    if (at_ == end_) fail_syntax("the end of a string");
    if (at_ >= look) {
      check_interrupt();
      look = at_ + std::min(left(), kLookBytes);
      continue;
    }
    const auto byte = static_cast<unsigned char>(*at_);
    if (byte == '"') return;
    if (byte == '\\') {
      has_escape = true;
      skip_escape();
    } else {
      const Character character =
          byte < 0x80 ? Character() : first_character(std::string_view(at_, left()));
      if (!character.code) fail_syntax(byte < 0x20 ? "a control character as an escape" : "UTF-8");
      at_ += character.bytes;
    }
  }
}

unsigned JsonLexer::hex_digits() const {
  const auto is_hex = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  };
  if (left() < 6 || !std::all_of(at_ + 2, at_ + 6, is_hex)) fail_syntax("four digits behind \\u");
  return hex_value(at_ + 2);
}

void JsonLexer::skip_escape() {
  if (left() < 2 || std::string_view("\"\\/bfnrtu").find(at_[1]) == std::string_view::npos)
    fail_syntax("an escape");
  if (at_[1] != 'u') {
    at_ += 2;
    return;
  }
  const unsigned code = hex_digits();
  if (is_low_surrogate(code)) fail_syntax("a pair of surrogates");
  at_ += 6;
  if (!is_high_surrogate(code)) return;
  if (left() < 2 || at_[0] != '\\' || at_[1] != 'u' || !is_low_surrogate(hex_digits()))
    fail_syntax("a pair of surrogates");
  at_ += 6;
}

std::string_view JsonLexer::unescaped(std::string_view raw) {
  char* const begin = pool_.offer(raw.size());
  char* out = begin;
  for (std::size_t i = 0; i < raw.size();) {
    const std::size_t plain = std::min(raw.find('\\', i), raw.size()) - i;
    out = std::copy_n(raw.data() + i, plain, out);
    i += plain;
    if (i == raw.size()) break;
    if (raw[i + 1] != 'u') {
      const std::size_t name = std::string_view("bfnrt").find(raw[i + 1]);
      *out++ = name == std::string_view::npos ? raw[i + 1] : "\b\f\n\r\t"[name];
      i += 2;
      continue;
    }
    unsigned code = hex_value(raw.data() + i + 2);
    i += 6;
    if (is_high_surrogate(code)) {
      code = 0x10000 + ((code - 0xd800) << 10) + (hex_value(raw.data() + i + 2) - 0xdc00);
      i += 6;
    }
    out = append_utf8(code, out);
  }
  const auto size = static_cast<std::size_t>(out - begin);
  pool_.keep(size);
  return {begin, size};
}

void JsonLexer::skip_digits() {
  const char* const begin = at_;
  while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
  if (at_ == begin) fail_syntax("a digit");
}

JsonNode JsonLexer::number() {
  const char* const begin = at_;
  bool is_integer = true;
  if (here() == '-') skip();
  if (here() == '0') {
    skip();
  } else {
    skip_digits();
  }
  if (here() == '.') {
    is_integer = false;
    skip();
    skip_digits();
  }
  if (here() == 'e' || here() == 'E') {
    is_integer = false;
    skip();
    if (here() == '+' || here() == '-') skip();
    skip_digits();
  }
  const std::string_view digits(begin, static_cast<std::size_t>(at_ - begin));
  return is_integer ? integer(digits) : real(digits);
}

JsonNode JsonLexer::integer(std::string_view digits) const {
  JsonNode node;
  const auto end = digits.data() + digits.size();
  std::int64_t value = 0;
  std::uint64_t large = 0;
  if (std::from_chars(digits.data(), end, value).ec == std::errc{}) {
    node.put(JsonKind::kSigned, value);
  } else if (digits.front() != '-' &&
             std::from_chars(digits.data(), end, large).ec == std::errc{}) {
    node.put(JsonKind::kUnsigned, large);
  } else {
    return real(digits);
  }
  return node;
}

JsonNode JsonLexer::real(std::string_view digits) const {
  double value = 0;
  const auto end = digits.data() + digits.size();
  if (std::from_chars(digits.data(), end, value).ec != std::errc{}) {
    if (!is_tiny(digits)) fail_syntax("a number up to 1.8e308");
    value = digits.starts_with('-') ? -0.0 : 0.0;
  }
  JsonNode node;
  node.put(JsonKind::kReal, value);
  return node;
}

}  // namespace detail

}  // namespace fovea
