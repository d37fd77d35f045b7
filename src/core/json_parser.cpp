// From a JSON text to the tree of a document.
//
// The library only tokenises: it drives TreeBuilder, which builds our own tree and enforces the
// limits, because the library's own tree silently keeps the last of two equal keys and
// bounds neither depth nor count. The tree is destroyed recursively, which kMaxJsonDepth makes
// safe.
#include "core/json.h"

#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/json_node.h"

namespace fovea {

namespace {

using detail::JsonNode;
using detail::kMaxQuotedBytes;

/// Longest reason taken from the library.
constexpr std::size_t kMaxReasonBytes = 200;

/// "line 3, column 7" of a byte offset, both counted from 1.
std::string place(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return cat("line ", line, ", column ", before.size() - line_start + 1);
}

/// The reason in the library's message, without its prefix and without a quotation of the text:
/// "[..] parse error at line 1, column 2: REASON; last read: '...'".
std::string reason_of(std::string_view message) {
  message = message.substr(0, message.find("; last read"));
  const auto skip_past = [&](std::string_view mark) {
    const std::size_t at = message.find(mark);
    if (at != std::string_view::npos) message.remove_prefix(at + mark.size());
    return at != std::string_view::npos;
  };
  if (!skip_past(", column ") || !skip_past(": ")) skip_past("] ");
  return std::string(message.substr(0, kMaxReasonBytes));
}

/// Python's json module writes NaN, Infinity and -Infinity, which are not JSON. This is the text
/// with null in their place, and the way back from its offsets. It must not outlive the original.
class TolerantText {
 public:
  explicit TolerantText(std::string_view original) : text_(original) {
    std::size_t copied = 0;
    for (std::size_t i = 0; i < original.size();) {
      const bool is_string = original[i] == '"';
      const std::size_t token =
          is_string ? string_length(original.substr(i)) : non_finite_length(original.substr(i));
      if (is_string) longest_string_ = std::max(longest_string_, token);
      if (!is_string && token > 0) {
        mended_.append(original, copied, i - copied).append("null");
        mended_.append(token > 4 ? token - 4 : 0, ' ');
        if (token < 4) inserted_.push_back(mended_.size());
        copied = i + token;
      }
      i += std::max<std::size_t>(token, 1);
    }
    if (copied > 0) text_ = mended_.append(original, copied);
  }
  TolerantText(const TolerantText&) = delete;
  TolerantText& operator=(const TolerantText&) = delete;

  [[nodiscard]] std::string_view text() const noexcept { return text_; }
  /// Bytes of the longest string, its quotes included.
  [[nodiscard]] std::size_t longest_string() const noexcept { return longest_string_; }

  /// Offset in the original of an offset in text().
  [[nodiscard]] std::size_t original_offset(std::size_t offset) const {
    const auto upper = std::upper_bound(inserted_.begin(), inserted_.end(), offset);
    return offset - static_cast<std::size_t>(upper - inserted_.begin());
  }

 private:
  /// Bytes of the string that the text begins with, up to its closing quote or the end.
  static std::size_t string_length(std::string_view text) {
    for (std::size_t i = 1; i < text.size(); ++i) {
      if (text[i] == '\\') {
        ++i;
      } else if (text[i] == '"') {
        return i + 1;
      }
    }
    return text.size();
  }

  static std::size_t non_finite_length(std::string_view text) {
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
      if (text.starts_with(word)) return word.size();
    }
    return 0;
  }

  std::string mended_;  // empty if nothing is replaced: texts may be large
  std::string_view text_;
  std::size_t longest_string_ = 0;
  std::vector<std::size_t> inserted_;  // ends of the words that grew by one byte
};

/// Receives the events of the parser. Every function returns whether to go on.
class TreeBuilder {
 public:
  using Library = nlohmann::json;

  explicit TreeBuilder(DuplicateKeys duplicates) : duplicates_(duplicates) {}

  bool null() { return add(std::monostate{}) != nullptr; }
  bool boolean(bool value) { return add(value) != nullptr; }
  bool number_integer(std::int64_t value) { return add(value) != nullptr; }
  bool number_unsigned(std::uint64_t value) { return add(value) != nullptr; }
  bool number_float(double value, const std::string& /*as_written*/) {
    return add(value) != nullptr;
  }
  bool string(std::string& value) { return add(box(std::move(value))) != nullptr; }
  bool binary(Library::binary_t& /*value*/) { return stop("binary values are not JSON"); }

  bool start_object(std::size_t /*unknown*/) { return open(add(box(JsonNode::Object{}))); }
  bool start_array(std::size_t /*unknown*/) { return open(add(box(JsonNode::Array{}))); }
  bool end_array() { return close(); }

  bool key(std::string& value) {
    if (value.size() > kMaxJsonKeyBytes) {
      return stop(cat("key of ", value.size(), " bytes, at most ", kMaxJsonKeyBytes, " are read"));
    }
    (*open_object())->keys.push_back(std::move(value));
    return true;
  }

  bool end_object() {
    JsonNode::Object& object = **open_object();
    object.by_key.resize(object.keys.size());
    std::iota(object.by_key.begin(), object.by_key.end(), 0u);
    std::stable_sort(
        object.by_key.begin(), object.by_key.end(),
        [&](std::uint32_t a, std::uint32_t b) { return object.keys[a] < object.keys[b]; });
    return settle_duplicates(object) && close();
  }

  bool parse_error(std::size_t offset, const std::string& /*token*/,
                   const Library::exception& exception) {
    failure_ = reason_of(exception.what());
    failure_offset_ = offset == 0 ? 0 : offset - 1;  // the library counts bytes read
    return false;
  }

  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  /// Where a syntax error is; nothing for limits and duplicates.
  [[nodiscard]] std::optional<std::size_t> failure_offset() const noexcept {
    return failure_offset_;
  }
  [[nodiscard]] JsonNode take() noexcept { return std::move(root_); }

 private:
  bool stop(std::string why) {
    failure_ = std::move(why);
    return false;
  }

  template <class T>
  static std::unique_ptr<T> box(T value) {
    return std::make_unique<T>(std::move(value));
  }

  /// The object being read; null if that is an array.
  [[nodiscard]] std::unique_ptr<JsonNode::Object>* open_object() {
    return std::get_if<std::unique_ptr<JsonNode::Object>>(&open_.back()->value);
  }

  /// Appends a value to the container being read, or makes it the root. Null on a limit.
  template <class T>
  JsonNode* add(T value) {
    if (++num_values_ > kMaxJsonValues) {
      stop(cat("more than ", kMaxJsonValues, " values"));
      return nullptr;
    }
    JsonNode& node = open_.empty() ? root_ : add_sibling();
    node.value = std::move(value);
    return &node;
  }

  /// Appends an empty value to the container being read.
  JsonNode& add_sibling() {
    if (auto* const object = open_object()) return (*object)->values.emplace_back();
    return std::get<std::unique_ptr<JsonNode::Array>>(open_.back()->value)->emplace_back();
  }

  /// A container that is open is the last of its siblings, so its address stays until it closes.
  bool open(JsonNode* container) {
    if (container == nullptr) return false;
    if (open_.size() == kMaxJsonDepth) return stop(cat("nested deeper than ", kMaxJsonDepth));
    open_.push_back(container);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  /// Of equal keys, which the stable sort left in file order, keeps the last or complains.
  bool settle_duplicates(JsonNode::Object& object) {
    const auto same = [&](std::uint32_t a, std::uint32_t b) {
      return object.keys[a] == object.keys[b];
    };
    const auto twice = std::adjacent_find(object.by_key.begin(), object.by_key.end(), same);
    if (twice == object.by_key.end()) return true;
    if (duplicates_ == DuplicateKeys::kReject) {
      return stop(cat("key ",
                      json_quote(std::string_view(object.keys[*twice]).substr(0, kMaxQuotedBytes)),
                      " occurs twice"));
    }
    std::reverse(object.by_key.begin(), object.by_key.end());
    const auto last = std::unique(object.by_key.begin(), object.by_key.end(), same);
    object.by_key.erase(last, object.by_key.end());
    std::reverse(object.by_key.begin(), object.by_key.end());
    return true;
  }

  const DuplicateKeys duplicates_;
  JsonNode root_;
  std::vector<JsonNode*> open_;  // from the root to the container being read
  std::size_t num_values_ = 0;
  std::string failure_;
  std::optional<std::size_t> failure_offset_;
};

/// Tells everything in a finished tree what it lies in. No deeper than kMaxJsonDepth.
void link(JsonNode& node) {
  const auto adopt = [&](std::vector<JsonNode>& children) {
    for (JsonNode& child : children) {
      child.parent = &node;
      link(child);
    }
  };
  if (auto* array = std::get_if<std::unique_ptr<JsonNode::Array>>(&node.value)) adopt(**array);
  if (auto* object = std::get_if<std::unique_ptr<JsonNode::Object>>(&node.value))
    adopt((*object)->values);
}

}  // namespace

JsonDocument JsonDocument::parse(std::string_view text, std::string name,
                                 DuplicateKeys duplicates) {
  FOVEA_CHECK(text.size() <= kMaxJsonBytes, kCorruptData, name, ": text has ", text.size(),
              " bytes, at most ", kMaxJsonBytes, " are read");
  // The library takes a zero byte for the end of the text and would ignore what follows.
  const std::size_t zero = text.find('\0');
  FOVEA_CHECK(zero == std::string_view::npos, kCorruptData, name, ": ", place(text, zero),
              ": zero byte");
  const TolerantText tolerant(text);
  FOVEA_CHECK(tolerant.longest_string() <= kMaxJsonStringBytes, kCorruptData, name, ": string of ",
              tolerant.longest_string(), " bytes, at most ", kMaxJsonStringBytes, " are read");
  TreeBuilder builder(duplicates);
  if (!nlohmann::json::sax_parse(tolerant.text(), &builder)) {
    const auto offset = builder.failure_offset();
    throw Error(ErrorCode::kCorruptData,
                cat(name, ": ", offset ? place(text, tolerant.original_offset(*offset)) + ": " : "",
                    builder.failure()));
  }
  auto tree = std::make_unique<detail::JsonTree>(
      detail::JsonTree{.root = builder.take(), .name = std::move(name)});
  link(tree->root);
  return JsonDocument(std::move(tree));
}

}  // namespace fovea
