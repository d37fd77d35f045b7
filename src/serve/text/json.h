#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace fovea::serve {

/// Most of what a body may hold. A conversation has some hundred values, the frames of all videos
/// of a request 8,192; strings may be as long as the body.
inline constexpr JsonLimits kBodyLimits{.bytes = UINT32_MAX,
                                        .values = 100'000,
                                        .depth = 32,
                                        .key_bytes = 1'000,
                                        .string_bytes = UINT32_MAX};

/// JSON that clients have sent, and the bytes that it refers to.
using SharedJson = std::shared_ptr<const JsonDocument>;

/// The JSON object in a body. Costs 32 bytes for each value and key, and as many as the strings
/// have that hold escapes.
/// @param text refers to what `owner` keeps; views of the object refer to it, too.
/// @throws ApiError(400, "invalid_json") with the place for text that is no JSON, is beyond
/// kBodyLimits, holds a key of an object twice, or is no object; Error(kCancelled) or
/// Error(kDeadline) under an Interrupt.
[[nodiscard]] SharedJson parse_json_object(std::string_view text,
                                           std::shared_ptr<const void> owner);

/// As above of a text of its own.
[[nodiscard]] SharedJson parse_json_object(std::string text);

/// Whether text is UTF-8, as JSON needs it.
[[nodiscard]] bool is_utf8(std::string_view text);

/// "items[2]": the path of an element.
[[nodiscard]] std::string element_path(std::string_view list, std::size_t index);

/// The members of an object of a body, each read at most once and by type; null counts as absent.
/// Texts and values are valid as long as the object's document. Complaints are
/// ApiError(400, "invalid_value" or "missing_field") with the path of the member, `where` in front.
class Fields {
 public:
  /// @throws ApiError if `json` is no object.
  Fields(const JsonView& json, std::string where);

  /// @param name outlives this.
  [[nodiscard]] std::optional<JsonView> find(std::string_view name);  ///< null: absent
  [[nodiscard]] std::optional<std::string_view> text(std::string_view name);
  [[nodiscard]] std::optional<bool> boolean(std::string_view name);
  [[nodiscard]] std::optional<double> number(std::string_view name);
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name);
  /// One of `choices`.
  [[nodiscard]] std::optional<std::string_view> choice(
      std::string_view name, std::initializer_list<std::string_view> choices);
  /// "items[2].fps": the path of a member.
  [[nodiscard]] std::string path(std::string_view name) const;

  /// @throws ApiError(400, "unknown_field") that names a member that was not asked for, and the
  /// nearest one that was.
  void refuse_others() const;

 private:
  JsonView json_;
  std::string where_;
  std::vector<std::string_view> asked_;
};

}  // namespace fovea::serve
