#include "core/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

#include "fovea/text.h"

namespace fovea {

namespace {

/// One unit of UTF-16 as \uXXXX.
void append_escape(std::string& out, std::uint32_t unit) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[unit >> shift & 0xfU];
}

void append_character(std::string& out, char character) {
  switch (character) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  constexpr unsigned char kFirstPrintable = 0x20;
  const auto byte = static_cast<unsigned char>(character);
  if (byte < kFirstPrintable) return append_escape(out, byte);
  out += character;
}

template <class Number>
void append_chars(std::string& out, Number number) {
  std::array<char, 24> text{};
  out.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr);
}

/// Writes d.ddde+XX without an exponent where that is short: 100000.0, 0.00012.
/// @param digits without a point. @param point where it stands behind the first of them.
void append_plain(std::string& out, std::string_view digits, int point) {
  if (point <= 0) {
    out.append("0.").append(static_cast<std::size_t>(-point), '0').append(digits);
    return;
  }
  const auto before = static_cast<std::size_t>(point);
  if (digits.size() <= before) {
    out.append(digits).append(before - digits.size(), '0').append(".0");
  } else {
    out.append(digits.substr(0, before)).append(".").append(digits.substr(before));
  }
}

}  // namespace

void append_json(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const Character character = first_character(text);
    if (!character.code) {
      out += "\ufffd";
    } else if (character.bytes == 1) {
      append_character(out, text.front());
    } else {
      out += text.substr(0, character.bytes);
    }
    text.remove_prefix(character.bytes);
  }
  out += '"';
}

/// Like Python and most libraries: exponents for what is below 0.0001 or from 1e15 on.
void append_json(std::string& out, double value) {
  constexpr int kFewest = -4;
  constexpr int kMost = 15;
  if (!std::isfinite(value)) return append_json(out, nullptr);
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), std::abs(value),
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view shortest(text.data(), static_cast<std::size_t>(end - text.data()));
  const std::size_t split = shortest.find('e');
  int point = 0;
  const std::size_t sign = shortest[split + 1] == '+' ? 1 : 0;  // from_chars() takes no plus
  std::from_chars(shortest.data() + split + 1 + sign, end, point);
  ++point;
  if (std::signbit(value)) out += '-';
  if (point <= kFewest || point > kMost) {
    out += shortest;
    return;
  }
  std::string digits(1, shortest.front());
  if (split > 2) digits += shortest.substr(2, split - 2);
  append_plain(out, digits, point);
}

void append_json(std::string& out, std::int64_t value) { append_chars(out, value); }
void append_json(std::string& out, std::uint64_t value) { append_chars(out, value); }
void append_json(std::string& out, bool value) { out += value ? "true" : "false"; }
void append_json(std::string& out, std::nullptr_t) { out += "null"; }

std::string json_in_ascii(std::string_view json) {
  constexpr char32_t kLast = 0x7e;
  constexpr char32_t kFirstOfTwo = 0x10000;
  std::string ascii;
  while (!json.empty()) {
    const Character character = first_character(json);
    const char32_t code = character.code.value_or(0xfffd);
    if (code <= kLast) {
      ascii += json.front();
    } else if (code < kFirstOfTwo) {
      append_escape(ascii, code);
    } else {
      append_escape(ascii, 0xd800 + ((code - kFirstOfTwo) >> 10U));
      append_escape(ascii, 0xdc00 + (code & 0x3ffU));
    }
    json.remove_prefix(character.bytes);
  }
  return ascii;
}

std::string json_in_lines(std::string_view json) {
  constexpr std::size_t kIndent = 2;
  std::string lines;
  std::size_t depth = 0;
  bool is_string = false;
  const auto new_line = [&] { lines.append("\n").append(depth * kIndent, ' '); };
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char character = json[i];
    if (is_string) {
      lines += character;
      if (character == '\\') lines += json[++i];
      is_string = character != '"';
      continue;
    }
    is_string = character == '"';
    const bool opens = character == '{' || character == '[';
    const bool closes = character == '}' || character == ']';
    const bool is_empty = closes && (json[i - 1] == '{' || json[i - 1] == '[');
    if (closes) --depth;
    if (closes && !is_empty) new_line();
    lines += character;
    if (character == ':') lines += ' ';
    if (opens) ++depth;
    const bool opens_empty = opens && (json[i + 1] == '}' || json[i + 1] == ']');
    if ((opens && !opens_empty) || character == ',') new_line();
  }
  return lines;
}

}  // namespace fovea
