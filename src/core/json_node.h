#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace fovea {

namespace detail {

/// Longest piece of a text that a message quotes.
inline constexpr std::size_t kMaxQuotedBytes = 40;

/// Longest piece of a key that a path shows.
inline constexpr std::size_t kMaxPathKeyBytes = 128;

/// One value of a parsed text and everything inside it: 24 bytes, as a text may hold millions.
struct JsonNode {
  using Array = std::vector<JsonNode>;
  struct Object;

  /// Integers keep the type they were read with; those beyond 64 bits arrive as double.
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double,
               std::unique_ptr<std::string>, std::unique_ptr<Array>, std::unique_ptr<Object>>
      value;
  const JsonNode* parent = nullptr;  // the container that it lies in; null at the root

  /// The value if it has this type, else null.
  template <class T>
  [[nodiscard]] const T* get() const noexcept {
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::monostate>) {
      return std::get_if<T>(&value);
    } else {
      const auto* const box = std::get_if<std::unique_ptr<T>>(&value);
      return box == nullptr ? nullptr : box->get();
    }
  }
};

/// Members in file order and their indices in ascending order of key, for lookups and duplicates.
struct JsonNode::Object {
  std::vector<std::string> keys;
  std::vector<JsonNode> values;
  std::vector<std::uint32_t> by_key;

  [[nodiscard]] const JsonNode* find(std::string_view key) const noexcept {
    const auto less = [this](std::uint32_t i, std::string_view wanted) { return keys[i] < wanted; };
    const auto it = std::lower_bound(by_key.begin(), by_key.end(), key, less);
    return it != by_key.end() && keys[*it] == key ? &values[*it] : nullptr;
  }
};

/// A parsed text with its name.
struct JsonTree {
  JsonNode root;
  std::string name;
};

}  // namespace detail

}  // namespace fovea
