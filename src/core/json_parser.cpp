// From a JSON text to the tree of a document. What is open is kept on a stack of its own, so that
// nesting costs no stack of the thread; the tree is a few vectors, so that its end needs no memory.
#include <algorithm>
#include <limits>
#include <utility>

#include "core/check.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/json_lexer.h"
#include "core/json_node.h"
#include "core/json_writer.h"

namespace fovea {

namespace {

using detail::JsonKind;
using detail::JsonLexer;
using detail::JsonNode;
using detail::JsonTree;

/// Builds a tree: the children of a container wait until it closes, and then go to their places.
class TreeReader {
 public:
  TreeReader(std::string_view text, const JsonRules& rules, JsonTree& tree)
      : rules_(rules), tree_(tree), lexer_(text, tree.name, rules, tree.pool) {}

  void read() {
    read_value();
    while (!open_.empty()) {
      const Open container = open_.back();
      const char next = lexer_.peek();
      if (next == (container.is_object ? '}' : ']')) {
        lexer_.skip();
        close();
        continue;
      }
      if (waiting_.size() > container.begin) {
        if (next != ',') lexer_.fail_syntax(container.is_object ? "',' or '}'" : "',' or ']'");
        lexer_.skip();
      }
      if (container.is_object) {
        count();
        waiting_.push_back(lexer_.key());
      }
      read_value();
    }
    lexer_.expect_end();
    tree_.nodes.push_back(waiting_.back());
  }

 private:
  struct Open {
    bool is_object;
    std::size_t begin;  // of its children in waiting_
  };

  void count() {
    constexpr std::size_t kLookValues = 4096;
    if (++num_values_ > rules_.limits.values)
      lexer_.fail(cat("more than ", rules_.limits.values, " values and keys"));
    if (num_values_ % kLookValues == 0) check_interrupt();
  }

  /// Takes a value, or opens it.
  void read_value() {
    count();
    const char first = lexer_.peek();
    if (first != '[' && first != '{') {
      waiting_.push_back(lexer_.scalar());
      return;
    }
    if (open_.size() == rules_.limits.depth)
      lexer_.fail(cat("nested deeper than ", rules_.limits.depth, " levels"));
    lexer_.skip();
    open_.push_back({.is_object = first == '{', .begin = waiting_.size()});
  }

  void close() {
    const Open container = open_.back();
    open_.pop_back();
    JsonNode node;
    detail::JsonChildren children;
    if (container.is_object) children.order = order_members(container.begin);
    const std::size_t count = waiting_.size() - container.begin;
    node.size = static_cast<std::uint32_t>(container.is_object ? count / 2 : count);
    children.first = static_cast<std::uint32_t>(tree_.nodes.size());
    node.put(container.is_object ? JsonKind::kObject : JsonKind::kArray, children);
    // The root comes last: no doubling for a single node.
    if (open_.empty()) tree_.nodes.reserve(tree_.nodes.size() + count + 1);
    const auto first = waiting_.begin() + static_cast<std::ptrdiff_t>(container.begin);
    tree_.nodes.insert(tree_.nodes.end(), first, waiting_.end());
    waiting_.resize(container.begin);
    waiting_.push_back(node);
  }

  [[nodiscard]] std::string_view key_at(std::size_t begin, std::uint32_t member) const noexcept {
    return waiting_[begin + 2 * std::size_t{member}].string();
  }

  /// A member while its object is sorted: most keys differ in their first bytes.
  struct Member {
    std::uint64_t start;  // the first eight bytes of its key as a number
    std::uint32_t index;
  };

  /// The members of the object that begins there, in ascending order of their keys, of equal ones
  /// in file order.
  [[nodiscard]] std::vector<Member> sorted_members(std::size_t begin) const {
    std::vector<Member> members((waiting_.size() - begin) / 2);
    for (std::uint32_t i = 0; i < members.size(); ++i) {
      const std::string_view key = key_at(begin, i).substr(0, sizeof(Member::start));
      std::uint64_t start = 0;
      for (const char c : key) start = start << 8 | static_cast<unsigned char>(c);
      start <<= 8 * (sizeof(start) - key.size()) % 64;
      members[i] = {.start = key.empty() ? 0 : start, .index = i};
    }
    std::sort(members.begin(), members.end(), [&](const Member& a, const Member& b) {
      if (a.start != b.start) return a.start < b.start;
      const int order = key_at(begin, a.index).compare(key_at(begin, b.index));
      return order != 0 ? order < 0 : a.index < b.index;
    });
    return members;
  }

  /// Writes the order of the members that begin there. @return where it begins.
  std::uint32_t order_members(std::size_t begin) {
    const std::size_t start = tree_.orders.size();
    for (const Member& member : sorted_members(begin)) tree_.orders.push_back(member.index);
    const auto first = tree_.orders.begin() + static_cast<std::ptrdiff_t>(start);
    const auto same = [&](std::uint32_t a, std::uint32_t b) {
      return key_at(begin, a) == key_at(begin, b);
    };
    const auto twice = std::adjacent_find(first, tree_.orders.end(), same);
    if (twice == tree_.orders.end()) return static_cast<std::uint32_t>(start);
    if (rules_.duplicates == DuplicateKeys::kReject) {
      const std::string_view key = key_at(begin, *twice).substr(0, detail::kMaxQuotedBytes);
      lexer_.fail(cat("key ", json_quote(key), " occurs twice"));
    }
    keep_last(begin, start);
    return order_members(begin);
  }

  /// Takes all but the last of equal keys out of waiting_, and the order out of the tree.
  void keep_last(std::size_t begin, std::size_t start) {
    std::vector<std::uint32_t> kept;
    for (std::size_t i = start; i < tree_.orders.size(); ++i) {
      const bool is_last = i + 1 == tree_.orders.size() ||
                           key_at(begin, tree_.orders[i]) != key_at(begin, tree_.orders[i + 1]);
      if (is_last) kept.push_back(tree_.orders[i]);
    }
    std::sort(kept.begin(), kept.end());
    std::size_t to = begin;
    for (const std::uint32_t member : kept) {
      waiting_[to++] = waiting_[begin + 2 * std::size_t{member}];
      waiting_[to++] = waiting_[begin + 2 * std::size_t{member} + 1];
    }
    waiting_.resize(to);
    tree_.orders.resize(start);
  }

  const JsonRules& rules_;
  JsonTree& tree_;
  JsonLexer lexer_;
  std::vector<Open> open_;         // from the root to the container being read
  std::vector<JsonNode> waiting_;  // what is read of them, each behind what it lies in
  std::size_t num_values_ = 0;
};

std::unique_ptr<JsonTree> tree_named(std::string name) {
  auto tree = std::make_unique<JsonTree>();
  tree->name = std::move(name);
  return tree;
}

void check_size(std::size_t bytes, std::string_view name, const JsonRules& rules) {
  const std::size_t most =
      std::min<std::size_t>(rules.limits.bytes, std::numeric_limits<std::uint32_t>::max());
  FOVEA_CHECK(bytes <= most, kCorruptData, name, ": text has ", bytes, " bytes, at most ", most,
              " are read");
}

}  // namespace

JsonDocument JsonDocument::parse(std::string_view text, std::string name,
                                 DuplicateKeys duplicates) {
  const JsonRules rules{.duplicates = duplicates};
  auto tree = tree_named(std::move(name));
  check_size(text.size(), tree->name, rules);
  tree->text = text;
  TreeReader(tree->text, rules, *tree).read();
  return JsonDocument(std::move(tree));
}

JsonDocument JsonDocument::parse_borrowed(std::string_view text, std::string name,
                                          const JsonRules& rules) {
  auto tree = tree_named(std::move(name));
  check_size(text.size(), tree->name, rules);
  TreeReader(text, rules, *tree).read();
  return JsonDocument(std::move(tree));
}

JsonDocument JsonDocument::read(const std::string& path, const JsonRules& rules) {
  auto tree = tree_named(path);
  tree->bytes = read_file(path, rules.limits.bytes);
  const std::string_view text(reinterpret_cast<const char*>(tree->bytes.data()),
                              tree->bytes.size());
  check_size(text.size(), path, rules);
  TreeReader(text, rules, *tree).read();
  return JsonDocument(std::move(tree));
}

}  // namespace fovea
