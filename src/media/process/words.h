#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "core/check.h"
#include "fovea/option.h"

// 64-bit words, little-endian, of which headers of messages consist, and options as such words.

namespace fovea::media {

/// Writes the words of a header one after the other.
class WordWriter {
 public:
  /// @param header has room for all words that will be put.
  explicit WordWriter(std::span<std::uint8_t> header) : rest_(header) {}

  /// @param value a whole number, an enumerator or a truth.
  template <class Value>
  void put(Value value) {
    const auto word = static_cast<std::uint64_t>(value);
    for (std::size_t byte = 0; byte < 8; ++byte)
      rest_[byte] = static_cast<std::uint8_t>(word >> 8 * byte);
    rest_ = rest_.subspan(8);
  }

 private:
  std::span<std::uint8_t> rest_;
};

/// Reads them in the same order.
class WordReader {
 public:
  /// @param name of the message, for complaints.
  WordReader(std::span<const std::uint8_t> header, std::string_view name)
      : rest_(header), name_(name) {}

  std::uint64_t take() {
    std::uint64_t word = 0;
    for (std::size_t byte = 0; byte < 8; ++byte) word |= std::uint64_t{rest_[byte]} << 8 * byte;
    rest_ = rest_.subspan(8);
    return word;
  }
  std::int64_t take_signed() { return static_cast<std::int64_t>(take()); }
  /// A number between two others. @param what it is, for the message.
  /// @throws Error(kCorruptData) for another one.
  std::uint64_t take_between(std::uint64_t first, std::uint64_t last, std::string_view what) {
    const std::uint64_t value = take();
    FOVEA_CHECK(value >= first && value <= last, kCorruptData, name_,
                ": message with its decoder process: no ", what, " has the number ", value);
    return value;
  }
  /// An enumerator between two others, likewise.
  template <class Enum>
  Enum take_enum(Enum first, Enum last, std::string_view what) {
    return static_cast<Enum>(
        take_between(static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(last), what));
  }

 private:
  std::span<const std::uint8_t> rest_;
  std::string_view name_;
};

/// Words that a value of an option takes.
template <class Value>
inline constexpr std::size_t kWordsOf = 1;
template <class Value>
inline constexpr std::size_t kWordsOf<std::optional<Value>> = 1 + kWordsOf<Value>;
template <class Value, std::size_t kSize>
inline constexpr std::size_t kWordsOf<Value[kSize]> = kSize* kWordsOf<Value>;

/// Words that all options of a struct take together.
template <class Struct>
[[nodiscard]] constexpr std::size_t option_words() {
  std::size_t words = 0;
  const Struct options{};
  for_each_option(options, [&]<class Value>(const auto& /*option*/, const Value& /*value*/) {
    words += kWordsOf<Value>;
  });
  return words;
}

template <class Value>
void put_value(WordWriter& words, const Value& value) {
  if constexpr (std::is_array_v<Value>) {
    for (const auto& element : value) put_value(words, element);
  } else if constexpr (std::is_same_v<Value, std::chrono::milliseconds>) {
    words.put(value.count());
  } else if constexpr (requires { value.has_value(); }) {
    words.put(value.has_value());
    put_value(words, value.value_or(0));
  } else {
    static_assert(std::is_integral_v<Value> || std::is_enum_v<Value>);
    words.put(value);
  }
}

/// @param name of the option, for messages. @throws Error(kCorruptData) for a word that is none of
/// the values of the type.
template <class Value>
void take_value(WordReader& words, Value& value, std::string_view name) {
  if constexpr (std::is_array_v<Value>) {
    for (auto& element : value) take_value(words, element, name);
  } else if constexpr (std::is_same_v<Value, std::chrono::milliseconds>) {
    value = Value(words.take_signed());
  } else if constexpr (requires { value.has_value(); }) {
    bool is_there = false;
    take_value(words, is_there, name);
    typename Value::value_type known{};
    take_value(words, known, name);
    value = is_there ? Value(known) : std::nullopt;
  } else if constexpr (std::is_enum_v<Value>) {
    value = static_cast<Value>(words.take_between(0, kValueNames<Value>.size() - 1, name));
  } else if constexpr (std::is_signed_v<Value>) {
    value = static_cast<Value>(words.take_signed());
  } else {
    value = static_cast<Value>(words.take_between(0, std::numeric_limits<Value>::max(), name));
  }
}

/// Writes all options of a struct, option_words() words.
template <class Struct>
void put_options(WordWriter& words, const Struct& options) {
  for_each_option(options,
                  [&](const auto& /*option*/, const auto& value) { put_value(words, value); });
}

/// Reads them. @throws Error(kCorruptData) as take_value().
template <class Struct>
void take_options(WordReader& words, Struct& options) {
  for_each_option(options,
                  [&](const auto& option, auto& value) { take_value(words, value, option.name); });
}

}  // namespace fovea::media
