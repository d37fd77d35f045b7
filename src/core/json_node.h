#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fovea {

namespace detail {

/// Longest piece of a text that a message quotes.
inline constexpr std::size_t kMaxQuotedBytes = 40;

/// One value of a parsed text and everything inside it.
struct JsonNode {
  using Array = std::vector<JsonNode>;
  /// Members in file order and their indices in ascending order of key, for lookups and duplicates.
  struct Object {
    std::vector<std::string> keys;
    std::vector<JsonNode> values;
    std::vector<std::uint32_t> by_key;

    [[nodiscard]] const JsonNode* find(std::string_view key) const noexcept {
      const auto less = [this](std::uint32_t i, std::string_view wanted) {
        return keys[i] < wanted;
      };
      const auto it = std::lower_bound(by_key.begin(), by_key.end(), key, less);
      return it != by_key.end() && keys[*it] == key ? &values[*it] : nullptr;
    }
  };

  /// Integers keep the type they were read with; those beyond 64 bits arrive as double.
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array,
               Object>
      value;

  template <class T>
  [[nodiscard]] const T* get() const noexcept {
    return std::get_if<T>(&value);
  }
};

}  // namespace detail

}  // namespace fovea
