#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::serve {

using Json = nlohmann::ordered_json;

/// Deepest nesting of arrays and objects in a body.
inline constexpr int kMaxJsonDepth = 32;

/// The JSON object in a body.
/// @throws ApiError(400, "invalid_json") with the place for text that is no JSON, is nested deeper,
/// holds a key of an object twice, or is no object.
[[nodiscard]] Json parse_json_object(std::string_view text);

/// JSON on one line; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string to_text(const Json& json);

/// Whether text is UTF-8, as JSON needs it.
[[nodiscard]] bool is_utf8(std::string_view text);

/// "items[2]": the path of an element.
[[nodiscard]] std::string element_path(const std::string& list, std::size_t index);

/// The members of an object of a body, each read at most once and by type; null counts as absent.
/// Complaints are ApiError(400, "invalid_value" or "missing_field") with the path of the member,
/// `where` in front.
class Fields {
 public:
  /// @param json an object that outlives this. @throws ApiError if it is none.
  Fields(const Json& json, std::string where);

  [[nodiscard]] const Json* find(std::string_view name);  ///< null: absent
  [[nodiscard]] std::optional<std::string> text(std::string_view name);
  [[nodiscard]] std::optional<bool> boolean(std::string_view name);
  [[nodiscard]] std::optional<double> number(std::string_view name);
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name);
  /// One of `choices`.
  [[nodiscard]] std::optional<std::string> choice(std::string_view name,
                                                  std::initializer_list<std::string_view> choices);
  /// "items[2].fps": the path of a member.
  [[nodiscard]] std::string path(std::string_view name) const;

  /// @throws ApiError(400, "unknown_field") that names a member nobody has asked for, and the
  /// nearest that somebody has.
  void refuse_others() const;

 private:
  const Json* json_;
  std::string where_;
  std::vector<std::string> asked_;
};

}  // namespace fovea::serve
