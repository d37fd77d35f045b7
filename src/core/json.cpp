// JSON behind a view that names file and key in every error message.
#include "core/json.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file.h"
#include "core/json_node.h"

namespace fovea {

namespace {

using detail::JsonNode;
using detail::kMaxPathKeyBytes;
using detail::kMaxQuotedBytes;

/// First position at which two doubles around 2^63 differ from what std::int64_t can hold.
constexpr double kInt64Limit = 0x1p63;

/// What a node is, for messages: `"16"`, `2.5`, `an object`.
std::string describe(const JsonNode& node) {
  struct Describer {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(std::int64_t value) const { return cat(value); }
    std::string operator()(std::uint64_t value) const { return cat(value); }
    std::string operator()(double value) const { return cat(value); }
    std::string operator()(const std::unique_ptr<std::string>& value) const {
      return json_quote(std::string_view(*value).substr(0, kMaxQuotedBytes));
    }
    std::string operator()(const std::unique_ptr<JsonNode::Array>&) const { return "an array"; }
    std::string operator()(const std::unique_ptr<JsonNode::Object>&) const { return "an object"; }
  };
  return std::visit(Describer{}, node.value);
}

std::string cut(std::string_view key) {
  return key.size() <= kMaxPathKeyBytes ? std::string(key)
                                        : cat(key.substr(0, kMaxPathKeyBytes), "...");
}

/// What leads to a member of `object`.
std::string member_step(const JsonNode& object, std::string_view key) {
  return cat(object.parent == nullptr ? ": " : ".", cut(key));
}

/// What leads from the container of a node to the node.
std::string last_step(const JsonNode& node) {
  if (const auto* array = node.parent->get<JsonNode::Array>())
    return cat("[", &node - array->data(), "]");
  const auto& object = *node.parent->get<JsonNode::Object>();
  return member_step(*node.parent,
                     object.keys[static_cast<std::size_t>(&node - object.values.data())]);
}

bool same_values(const JsonNode& a, const JsonNode& b);

bool same_values(const JsonNode::Object& a, const JsonNode::Object& b) {
  if (a.keys.size() != b.keys.size()) return false;
  for (std::size_t i = 0; i < a.keys.size(); ++i) {
    const JsonNode* const other = b.find(a.keys[i]);
    if (other == nullptr || !same_values(a.values[i], *other)) return false;
  }
  return true;
}

std::optional<double> number_of(const JsonNode& node) {
  if (const auto* value = node.get<double>()) return *value;
  if (const auto* value = node.get<std::int64_t>()) return static_cast<double>(*value);
  if (const auto* value = node.get<std::uint64_t>()) return static_cast<double>(*value);
  return std::nullopt;
}

bool same_values(const JsonNode& a, const JsonNode& b) {
  if (const auto number = number_of(a)) return number == number_of(b);
  if (a.value.index() != b.value.index()) return false;
  if (const auto* text = a.get<std::string>()) return *text == *b.get<std::string>();
  if (const auto* flag = a.get<bool>()) return *flag == *b.get<bool>();
  if (const auto* object = a.get<JsonNode::Object>()) {
    return same_values(*object, *b.get<JsonNode::Object>());
  }
  if (const auto* array = a.get<JsonNode::Array>()) {
    const auto& other = *b.get<JsonNode::Array>();
    return std::equal(array->begin(), array->end(), other.begin(), other.end(),
                      [](const JsonNode& x, const JsonNode& y) { return same_values(x, y); });
  }
  return true;  // both null
}

}  // namespace

bool JsonView::is_object() const noexcept { return node_->get<JsonNode::Object>() != nullptr; }
bool JsonView::is_array() const noexcept { return node_->get<JsonNode::Array>() != nullptr; }
bool JsonView::is_string() const noexcept { return node_->get<std::string>() != nullptr; }

bool JsonView::is_number() const noexcept {
  return is_integer() || node_->get<double>() != nullptr;
}

bool JsonView::is_integer() const noexcept {
  return node_->get<std::int64_t>() != nullptr || node_->get<std::uint64_t>() != nullptr;
}

bool JsonView::equals(const JsonView& other) const { return same_values(*node_, *other.node_); }

std::string JsonView::path() const {
  std::string steps;
  for (const JsonNode* node = node_; node->parent != nullptr; node = node->parent)
    steps.insert(0, last_step(*node));
  return tree_->name + steps;
}

std::string JsonView::member_path(std::string_view key) const {
  return path() + member_step(*node_, key);
}

void JsonView::fail(std::string_view expected) const {
  throw Error(ErrorCode::kCorruptData,
              cat(path(), ": expected ", expected, ", got ", describe(*node_)));
}

std::optional<JsonView> JsonView::find(std::string_view key) const {
  const auto* object = node_->get<JsonNode::Object>();
  if (object == nullptr) fail("an object");
  const JsonNode* member = object->find(key);
  if (member == nullptr || member->get<std::monostate>() != nullptr) return std::nullopt;
  return JsonView(*member, *tree_);
}

JsonView JsonView::at(std::string_view key) const {
  std::optional<JsonView> member = find(key);
  FOVEA_CHECK(member.has_value(), kCorruptData, member_path(key), ": expected a value, got none");
  return *member;
}

std::vector<JsonView> JsonView::elements() const {
  const auto* array = node_->get<JsonNode::Array>();
  if (array == nullptr) fail("an array");
  std::vector<JsonView> views;
  views.reserve(array->size());
  for (const JsonNode& element : *array) views.push_back(JsonView(element, *tree_));
  return views;
}

std::size_t JsonView::num_elements() const {
  const auto* array = node_->get<JsonNode::Array>();
  if (array == nullptr) fail("an array");
  return array->size();
}

std::vector<std::string_view> JsonView::keys() const {
  const auto* object = node_->get<JsonNode::Object>();
  if (object == nullptr) fail("an object");
  std::vector<std::uint32_t> in_file_order = object->by_key;
  std::sort(in_file_order.begin(), in_file_order.end());
  std::vector<std::string_view> keys;
  keys.reserve(in_file_order.size());
  for (const std::uint32_t i : in_file_order) keys.push_back(object->keys[i]);
  return keys;
}

std::int64_t JsonView::as_int() const {
  if (const auto* value = node_->get<std::int64_t>()) return *value;
  if (const auto* value = node_->get<std::uint64_t>();
      value != nullptr && std::in_range<std::int64_t>(*value))
    return static_cast<std::int64_t>(*value);
  if (const auto* value = node_->get<double>();
      value != nullptr && *value == std::floor(*value) && std::abs(*value) < kInt64Limit)
    return static_cast<std::int64_t>(*value);
  fail(is_integer() ? "an integer of at most 63 bits" : "an integer");
}

double JsonView::as_number() const {
  if (const auto number = number_of(*node_)) return *number;
  fail("a number");
}

bool JsonView::as_bool() const {
  if (const auto* value = node_->get<bool>()) return *value;
  fail("true or false");
}

std::string JsonView::as_string() const {
  if (const auto* value = node_->get<std::string>()) return *value;
  fail("a string");
}

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

JsonDocument::JsonDocument(std::unique_ptr<detail::JsonTree> tree) : tree_(std::move(tree)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

JsonDocument JsonDocument::read(const std::string& path) {
  const std::vector<std::uint8_t> bytes = read_file(path, kMaxJsonBytes);
  return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

JsonView JsonDocument::root() const { return {tree_->root, *tree_}; }

std::string json_quote(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_number(double value) { return nlohmann::json(value).dump(); }

}  // namespace fovea
