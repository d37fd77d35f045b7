#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/json_writer.h"

namespace fovea::test {

class Json;

namespace detail {

template <class T>
concept JsonText = std::convertible_to<const T&, std::string_view>;
template <class T>
concept JsonScalar = std::is_arithmetic_v<T> || std::same_as<T, std::nullptr_t> || JsonText<T>;
template <class T>
concept JsonRange = !JsonScalar<T> && !std::same_as<T, Json> && requires(const T& range) {
  range.begin();
};

}  // namespace detail

/// JSON by a library that shares nothing with ours: what tests send, and how they read what we
/// write. Only json.cpp includes that library, whose templates take seconds wherever they are
/// compiled. Members keep their order, and objects of another order are not equal; an integer
/// equals a fraction of its value.
class Json {
 public:
  using value_type = Json;
  using const_iterator = const Json*;
  using iterator = const_iterator;

  Json();  ///< null
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(Json other) noexcept;
  ~Json();

  /// A number, a text, true, false or null.
  template <detail::JsonScalar T>
  Json(const T& value) {  // NOLINT(*-explicit-*): a test writes {"rows", 3}
    if constexpr (std::same_as<T, bool>) {
      set(value);
    } else if constexpr (std::integral<T>) {
      set(static_cast<std::int64_t>(value));
    } else if constexpr (std::floating_point<T>) {
      set(static_cast<double>(value));
    } else if constexpr (!std::same_as<T, std::nullptr_t>) {
      set(std::string_view(value));
    }
  }
  /// An object if each value is a list of a text and one more value, else an array.
  Json(std::initializer_list<Json> values);  // NOLINT(*-explicit-*)
  /// An array of what the range holds.
  template <detail::JsonRange Range>
  explicit Json(const Range& range) : Json(array()) {
    for (const auto& value : range) push_back(value);
  }
  [[nodiscard]] static Json array(std::initializer_list<Json> values = {});
  [[nodiscard]] static Json object();

  /// @throws std::exception for what is not JSON.
  [[nodiscard]] static Json parse(std::string_view text);
  /// On one line without spaces.
  [[nodiscard]] std::string dump() const;

  [[nodiscard]] bool is_null() const noexcept { return kind_ == Kind::kNull; }
  [[nodiscard]] bool is_string() const noexcept { return kind_ == Kind::kText; }
  [[nodiscard]] bool is_array() const noexcept { return kind_ == Kind::kArray; }
  [[nodiscard]] bool is_object() const noexcept { return kind_ == Kind::kObject; }

  /// A bool, a number or a text. @throws std::logic_error if it is none.
  template <class T>
  [[nodiscard]] T get() const {
    if constexpr (std::same_as<T, bool>) {
      return boolean();
    } else if constexpr (std::integral<T>) {
      return static_cast<T>(integer());
    } else if constexpr (std::floating_point<T>) {
      return static_cast<T>(number());
    } else {
      return text();
    }
  }
  /// Of a text.
  operator const std::string&() const { return text(); }  // NOLINT(*-explicit-*)

  // Of arrays and objects, whose values are visited in their order; others have none.
  [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
  [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
  [[nodiscard]] const_iterator begin() const noexcept { return values_.data(); }
  [[nodiscard]] const_iterator end() const noexcept { return values_.data() + values_.size(); }
  /// @throws std::logic_error if there is no such value.
  [[nodiscard]] const Json& operator[](std::size_t index) const;
  [[nodiscard]] const Json& operator[](std::string_view name) const { return at(name); }
  [[nodiscard]] const Json& at(std::string_view name) const;
  /// Adds what is missing; null becomes an array or an object.
  [[nodiscard]] Json& operator[](std::size_t index);
  [[nodiscard]] Json& operator[](std::string_view name);
  void push_back(Json value);
  /// Of an object.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  [[nodiscard]] bool contains(std::string_view name) const noexcept;

  friend bool operator==(const Json& a, const Json& b);
  template <detail::JsonScalar T>
  friend bool operator==(const Json& a, const T& b) {
    return a == Json(b);
  }
  friend std::ostream& operator<<(std::ostream& out, const Json& json);

 private:
  enum class Kind : std::uint8_t { kNull, kBool, kInteger, kFraction, kText, kArray, kObject };
  struct Library;  ///< conversions from and to the library's values

  void set(bool value);
  void set(std::int64_t value);
  void set(double value);
  void set(std::string_view value);
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] const Json* find(std::string_view name) const noexcept;

  Kind kind_ = Kind::kNull;
  std::int64_t integer_ = 0;  ///< a bool, too
  double fraction_ = 0;
  std::string text_;
  std::vector<Json> values_;
  std::vector<std::string> names_;  ///< of an object, one for each of its values
};

inline std::string to_text(const Json& json) { return json.dump(); }

/// What our writer has written, read again.
template <class T>
[[nodiscard]] Json read_again(const T& written) {
  return Json::parse(to_json_text(written));
}

}  // namespace fovea::test
