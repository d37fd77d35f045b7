// JSON behind a view that names file and key in every error message.
#include "core/json.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "core/check.h"
#include "core/json_node.h"
#include "core/json_writer.h"

namespace fovea {

namespace {

using detail::JsonKind;
using detail::JsonNode;
using detail::JsonTree;
using detail::kMaxPathKeyBytes;
using detail::kMaxQuotedBytes;

/// First position at which two doubles around 2^63 differ from what std::int64_t can hold.
constexpr double kInt64Limit = 0x1p63;

std::string cut(std::string_view key) {
  return key.size() <= kMaxPathKeyBytes ? std::string(key)
                                        : cat(key.substr(0, kMaxPathKeyBytes), "...");
}

/// The number of entries that a container has in JsonTree::nodes.
std::size_t num_entries(const JsonNode& node) {
  if (node.kind == JsonKind::kArray) return node.size;
  return node.kind == JsonKind::kObject ? 2 * std::size_t{node.size} : 0;
}

bool same_values(const JsonTree& tree_a, const JsonNode& a, const JsonTree& tree_b,
                 const JsonNode& b);

bool same_members(const JsonTree& tree_a, const JsonNode& a, const JsonTree& tree_b,
                  const JsonNode& b) {
  if (a.size != b.size) return false;
  for (std::size_t i = 0; i < a.size; ++i) {
    const JsonNode* const other = tree_b.find(b, tree_a.key(a, i).string());
    if (other == nullptr || !same_values(tree_a, tree_a.value(a, i), tree_b, *other)) return false;
  }
  return true;
}

std::optional<double> number_of(const JsonNode& node) {
  switch (node.kind) {
    case JsonKind::kReal: return node.get<double>();
    case JsonKind::kSigned: return static_cast<double>(node.get<std::int64_t>());
    case JsonKind::kUnsigned: return static_cast<double>(node.get<std::uint64_t>());
    default: return std::nullopt;
  }
}

bool same_values(const JsonTree& tree_a, const JsonNode& a, const JsonTree& tree_b,
                 const JsonNode& b) {
  if (const auto number = number_of(a)) return number == number_of(b);
  if (a.kind != b.kind) return false;
  if (a.kind == JsonKind::kString) return a.string() == b.string();
  if (a.kind == JsonKind::kBool) return a.get<bool>() == b.get<bool>();
  if (a.kind == JsonKind::kObject) return same_members(tree_a, a, tree_b, b);
  if (a.kind == JsonKind::kNull) return true;
  const auto ours = tree_a.elements(a);
  const auto others = tree_b.elements(b);
  return std::equal(
      ours.begin(), ours.end(), others.begin(), others.end(),
      [&](const JsonNode& x, const JsonNode& y) { return same_values(tree_a, x, tree_b, y); });
}

}  // namespace

std::string JsonView::summary() const {
  switch (node_->kind) {
    case JsonKind::kNull: return "null";
    case JsonKind::kBool: return node_->get<bool>() ? "true" : "false";
    case JsonKind::kSigned: return cat(node_->get<std::int64_t>());
    case JsonKind::kUnsigned: return cat(node_->get<std::uint64_t>());
    case JsonKind::kReal: return cat(node_->get<double>());
    case JsonKind::kString: return json_quote(node_->string().substr(0, kMaxQuotedBytes));
    case JsonKind::kArray: return "an array";
    case JsonKind::kObject: return "an object";
  }
  return {};
}

bool JsonView::is_object() const noexcept { return node_->kind == JsonKind::kObject; }
bool JsonView::is_array() const noexcept { return node_->kind == JsonKind::kArray; }
bool JsonView::is_string() const noexcept { return node_->kind == JsonKind::kString; }
bool JsonView::is_bool() const noexcept { return node_->kind == JsonKind::kBool; }
bool JsonView::is_null() const noexcept { return node_->kind == JsonKind::kNull; }

bool JsonView::is_number() const noexcept { return is_integer() || node_->kind == JsonKind::kReal; }

bool JsonView::is_integer() const noexcept {
  return node_->kind == JsonKind::kSigned || node_->kind == JsonKind::kUnsigned;
}

std::optional<std::int64_t> JsonView::integer() const noexcept {
  if (node_->kind == JsonKind::kSigned) return node_->get<std::int64_t>();
  const bool fits = node_->kind == JsonKind::kUnsigned &&
                    std::in_range<std::int64_t>(node_->get<std::uint64_t>());
  if (!fits) return std::nullopt;
  return static_cast<std::int64_t>(node_->get<std::uint64_t>());
}

std::optional<std::int64_t> JsonView::whole() const noexcept {
  if (node_->kind != JsonKind::kReal) return integer();
  const auto value = node_->get<double>();
  if (value != std::floor(value) || std::abs(value) >= kInt64Limit) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

bool JsonView::equals(const JsonView& other) const {
  return same_values(*tree_, *node_, *other.tree_, *other.node_);
}

/// Containers stand behind their children: one walk from the node to the root meets all that it
/// lies in.
std::string JsonView::path() const {
  std::vector<std::string> steps;
  const std::vector<JsonNode>& nodes = tree_->nodes;
  auto at = static_cast<std::size_t>(node_ - nodes.data());
  for (std::size_t i = at + 1; i < nodes.size(); ++i) {
    const std::size_t entries = num_entries(nodes[i]);
    if (entries == 0) continue;
    const std::size_t first = nodes[i].get<detail::JsonChildren>().first;
    if (at < first || at >= first + entries) continue;
    const bool is_array = nodes[i].kind == JsonKind::kArray;
    const bool is_root = i + 1 == nodes.size();
    steps.push_back(is_array ? cat("[", at - first, "]")
                             : cat(is_root ? ": " : ".", cut(nodes[at - 1].string())));
    at = i;
  }
  std::string path = tree_->name;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) path += *step;
  return path;
}

std::string JsonView::member_path(std::string_view key) const {
  const bool is_root = node_ == &tree_->nodes.back();
  return path() + (is_root ? ": " : ".") + cut(key);
}

void JsonView::fail(std::string_view expected) const {
  throw Error(ErrorCode::kCorruptData, cat(path(), ": expected ", expected, ", got ", summary()));
}

std::optional<JsonView> JsonView::find(std::string_view key) const {
  if (!is_object()) fail("an object");
  const JsonNode* const member = tree_->find(*node_, key);
  if (member == nullptr || member->kind == JsonKind::kNull) return std::nullopt;
  return JsonView(*member, *tree_);
}

JsonView JsonView::at(std::string_view key) const {
  std::optional<JsonView> member = find(key);
  FOVEA_CHECK(member.has_value(), kCorruptData, member_path(key), ": expected a value, got none");
  return *member;
}

std::vector<JsonView> JsonView::elements() const {
  const std::size_t count = num_elements();
  std::vector<JsonView> views;
  views.reserve(count);
  for (std::size_t i = 0; i < count; ++i) views.push_back(element(i));
  return views;
}

std::size_t JsonView::num_elements() const {
  if (!is_array()) fail("an array");
  return node_->size;
}

JsonView JsonView::element(std::size_t i) const {
  FOVEA_CHECK(i < num_elements(), kInternal, path(), ": no element ", i);
  return {tree_->elements(*node_)[i], *tree_};
}

std::vector<std::string_view> JsonView::keys() const {
  std::vector<std::string_view> keys;
  keys.reserve(num_members());
  for (std::size_t i = 0; i < num_members(); ++i) keys.push_back(key(i));
  return keys;
}

std::size_t JsonView::num_members() const {
  if (!is_object()) fail("an object");
  return node_->size;
}

std::string_view JsonView::key(std::size_t i) const {
  FOVEA_CHECK(i < num_members(), kInternal, path(), ": no member ", i);
  return tree_->key(*node_, i).string();
}

JsonView JsonView::member(std::size_t i) const {
  FOVEA_CHECK(i < num_members(), kInternal, path(), ": no member ", i);
  return {tree_->value(*node_, i), *tree_};
}

std::int64_t JsonView::as_int() const {
  if (const std::optional<std::int64_t> value = whole()) return *value;
  fail(is_integer() ? "an integer of at most 63 bits" : "an integer");
}

double JsonView::as_number() const {
  if (const auto number = number_of(*node_)) return *number;
  fail("a number");
}

bool JsonView::as_bool() const {
  if (!is_bool()) fail("true or false");
  return node_->get<bool>();
}

std::string_view JsonView::as_text() const {
  if (!is_string()) fail("a string");
  return node_->string();
}

std::string JsonView::as_string() const { return std::string(as_text()); }

std::int64_t JsonView::int_or(std::string_view key, std::int64_t fallback) const {
  const auto member = find(key);
  return member ? member->as_int() : fallback;
}

double JsonView::number_or(std::string_view key, double fallback) const {
  const auto member = find(key);
  return member ? member->as_number() : fallback;
}

bool JsonView::bool_or(std::string_view key, bool fallback) const {
  const auto member = find(key);
  return member ? member->as_bool() : fallback;
}

std::string JsonView::string_or(std::string_view key, std::string fallback) const {
  const auto member = find(key);
  return member ? member->as_string() : std::move(fallback);
}

void JsonView::append_to(std::string& out, Members order) const {
  if (is_array()) {
    out += '[';
    for (std::size_t i = 0; i < num_elements(); ++i) {
      if (i > 0) out += ',';
      element(i).append_to(out, order);
    }
    out += ']';
  } else if (is_object()) {
    std::vector<std::size_t> members(num_members());
    std::iota(members.begin(), members.end(), std::size_t{0});
    if (order == Members::kByName) {
      std::ranges::sort(members, {}, [this](std::size_t i) { return key(i); });
    }
    out += '{';
    for (const std::size_t i : members) {
      if (i != members.front()) out += ',';
      append_json(out, key(i));
      out += ':';
      member(i).append_to(out, order);
    }
    out += '}';
  } else if (is_string()) {
    append_json(out, node_->string());
  } else {
    out += node_->kind == JsonKind::kReal ? json_number(node_->get<double>()) : summary();
  }
}

JsonView JsonDocument::root() const { return {tree_->nodes.back(), *tree_}; }

}  // namespace fovea
