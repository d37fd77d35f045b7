#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fovea {

namespace detail {

/// Longest piece of a text that a message quotes.
inline constexpr std::size_t kMaxQuotedBytes = 40;

/// Longest piece of a key that a path shows.
inline constexpr std::size_t kMaxPathKeyBytes = 128;

/// Integers keep the type they were read with; those beyond 64 bits arrive as kReal.
enum class JsonKind : std::uint8_t {
  kNull,
  kBool,
  kSigned,
  kUnsigned,
  kReal,
  kString,
  kArray,
  kObject
};

/// Where the children of a container lie: indices into JsonTree::nodes and JsonTree::orders.
struct JsonChildren {
  std::uint32_t first = 0;
  std::uint32_t order = 0;  ///< of an object: where the order of its keys begins
};

/// One value of a parsed text: 16 bytes, as a text may hold millions.
struct JsonNode {
  JsonKind kind = JsonKind::kNull;
  std::uint32_t size = 0;  ///< bytes of a string, elements of an array, members of an object
  std::uint64_t bits = 0;  ///< what else there is, by kind

  /// The value that was put there, which is bool, std::int64_t, std::uint64_t, double, const char*
  /// or JsonChildren.
  template <class T>
  [[nodiscard]] T get() const noexcept {
    if constexpr (std::is_same_v<T, bool>) {
      return bits != 0;
    } else {
      return std::bit_cast<T>(bits);
    }
  }
  template <class T>
  void put(JsonKind as, T value) noexcept {
    kind = as;
    if constexpr (std::is_same_v<T, bool>) {
      bits = value ? 1 : 0;
    } else {
      bits = std::bit_cast<std::uint64_t>(value);
    }
  }

  [[nodiscard]] std::string_view string() const noexcept { return {get<const char*>(), size}; }
};
static_assert(sizeof(JsonNode) == 16);

/// Memory for strings that a text spells with escapes. Blocks stay where they are.
class JsonTextPool {
 public:
  /// Room for `bytes`, of which the caller keeps some by keep().
  [[nodiscard]] char* offer(std::size_t bytes) {
    constexpr std::size_t kBlockBytes = std::size_t{64} << 10;
    if (bytes > left_) {
      left_ = std::max(bytes, kBlockBytes);
      next_ = blocks_.emplace_back(std::make_unique_for_overwrite<char[]>(left_)).get();
    }
    return next_;
  }
  /// The first `bytes` of what was offered last stay.
  void keep(std::size_t bytes) noexcept {
    next_ += bytes;
    left_ -= bytes;
  }

 private:
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  std::size_t left_ = 0;
};

/// A parsed text with its name. The children of a container are neighbours in `nodes`, members of
/// an object as key, value, key, value; a container stands behind its children, the root is the
/// last.
struct JsonTree {
  std::string name;
  std::string text;                 ///< a copy; empty if the text is borrowed
  std::vector<std::uint8_t> bytes;  ///< of a file; empty if it was none
  std::vector<JsonNode> nodes;
  /// For each object the numbers of its members in ascending order of their keys.
  std::vector<std::uint32_t> orders;
  JsonTextPool pool;

  [[nodiscard]] std::span<const JsonNode> elements(const JsonNode& array) const noexcept {
    return {nodes.data() + array.get<JsonChildren>().first, array.size};
  }
  [[nodiscard]] const JsonNode& key(const JsonNode& object, std::size_t i) const noexcept {
    return nodes[object.get<JsonChildren>().first + 2 * i];
  }
  [[nodiscard]] const JsonNode& value(const JsonNode& object, std::size_t i) const noexcept {
    return nodes[object.get<JsonChildren>().first + 2 * i + 1];
  }
  /// The member of that key; null if there is none.
  [[nodiscard]] const JsonNode* find(const JsonNode& object,
                                     std::string_view wanted) const noexcept {
    const std::span order(orders.data() + object.get<JsonChildren>().order, object.size);
    const auto at = std::lower_bound(
        order.begin(), order.end(), wanted,
        [&](std::uint32_t i, std::string_view sought) { return key(object, i).string() < sought; });
    const bool is_there = at != order.end() && key(object, *at).string() == wanted;
    return is_there ? &value(object, *at) : nullptr;
  }
};

}  // namespace detail

}  // namespace fovea
