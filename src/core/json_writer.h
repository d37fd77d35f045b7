#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

namespace fovea {

// JSON that programs write: text that grows at its end, on one line. There is no tree, so that no
// destructor allocates: where memory runs out, std::bad_alloc leaves the function that appends.

/// Appends a text as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
/// Source: RFC 8259, section 7.
void append_json(std::string& out, std::string_view text);
/// Appends the shortest JSON number that reads back as the same value; null if it is not finite.
void append_json(std::string& out, double value);
void append_json(std::string& out, std::int64_t value);
void append_json(std::string& out, std::uint64_t value);
void append_json(std::string& out, bool value);
void append_json(std::string& out, std::nullptr_t null);

namespace detail {

/// JsonObject, JsonArray.
template <class T>
concept WritesJson = requires(const T& value, std::string& out) {
  value.append_to(out);
};

template <class T>
concept IsOptional = requires(const T& value) {
  value.has_value();
  *value;
};

/// std::map<std::string, int>, std::vector<std::pair<std::string, int>>.
template <class T>
concept HasNames = requires(const std::ranges::range_value_t<T>& element) {
  std::string_view(element.first);
  element.second;
};

}  // namespace detail

/// Appends any number as one; a text; an optional, absent as null; a range of names with values as
/// an object, another range as a list; an object or a list.
template <class T>
void append_json(std::string& out, const T& value) {
  if constexpr (std::signed_integral<T>) {
    append_json(out, std::int64_t{value});
  } else if constexpr (std::unsigned_integral<T>) {
    append_json(out, std::uint64_t{value});
  } else if constexpr (std::floating_point<T>) {
    append_json(out, static_cast<double>(value));
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    append_json(out, std::string_view(value));
  } else if constexpr (detail::WritesJson<T>) {
    value.append_to(out);
  } else if constexpr (detail::IsOptional<T>) {
    if (value.has_value()) {
      append_json(out, *value);
    } else {
      append_json(out, nullptr);
    }
  } else {
    static_assert(std::ranges::input_range<const T&>, "JSON has no such value");
    constexpr bool kHasNames = detail::HasNames<T>;
    out += kHasNames ? '{' : '[';
    bool is_first = true;
    for (const auto& element : value) {
      if (!std::exchange(is_first, false)) out += ',';
      if constexpr (kHasNames) {
        append_json(out, element.first);
        out += ':';
        append_json(out, element.second);
      } else {
        append_json(out, element);
      }
    }
    out += kHasNames ? '}' : ']';
  }
}

/// A value that append_json() takes, as a text of its own.
template <class T>
[[nodiscard]] std::string to_json_text(const T& value) {
  std::string json;
  append_json(json, value);
  return json;
}
[[nodiscard]] inline std::string json_quote(std::string_view text) { return to_json_text(text); }
[[nodiscard]] inline std::string json_number(double value) { return to_json_text(value); }

/// A member of an object, for lists in braces.
struct JsonMember {
  template <class T>
  JsonMember(std::string_view name, const T& value) {
    append_json(text, name);
    text += ':';
    append_json(text, value);
  }

  std::string text;
};

/// An object that is written, members in the order in which they come. Who writes a name twice has
/// it twice.
class JsonObject {
 public:
  JsonObject() = default;
  JsonObject(std::initializer_list<JsonMember> members) {
    for (const JsonMember& member : members) add(member.text);
  }

  /// Adds a member; what append_json() takes is its value.
  template <class T>
  JsonObject& set(std::string_view name, const T& value) {
    add(json_quote(name));
    members_ += ':';
    append_json(members_, value);
    return *this;
  }
  /// Adds the members of another object.
  JsonObject& merge(const JsonObject& other) {
    if (!other.empty()) add(other.members_);
    return *this;
  }

  [[nodiscard]] bool empty() const noexcept { return members_.empty(); }
  void append_to(std::string& out) const { out.append("{").append(members_).append("}"); }

 private:
  void add(std::string_view text) {
    if (!members_.empty()) members_ += ',';
    members_ += text;
  }

  std::string members_;
};

/// A list that is written.
class JsonArray {
 public:
  JsonArray() = default;
  /// A list of these values, each of any type.
  template <class... T>
  [[nodiscard]] static JsonArray of(const T&... values) {
    JsonArray list;
    (list.add(values), ...);
    return list;
  }

  template <class T>
  JsonArray& add(const T& value) {
    if (!elements_.empty()) elements_ += ',';
    append_json(elements_, value);
    return *this;
  }

  [[nodiscard]] bool empty() const noexcept { return elements_.empty(); }
  void append_to(std::string& out) const { out.append("[").append(elements_).append("]"); }

 private:
  std::string elements_;
};

/// JSON text with all but ASCII as escapes, for headers of HTTP. @param json is JSON.
[[nodiscard]] std::string json_in_ascii(std::string_view json);

/// JSON text with a line for each member and element, for people. @param json is JSON on one line.
[[nodiscard]] std::string json_in_lines(std::string_view json);

}  // namespace fovea
