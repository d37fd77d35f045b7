#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fovea/reports.h"
#include "serve/http/message.h"
#include "serve/media/media_source.h"
#include "serve/routes/call_limits.h"
#include "serve/rows/reply_formats.h"
#include "serve/text/json.h"
#include "serve/text/schema.h"

namespace fovea::serve {

/// An item of a request, and how the client calls it.
struct EncodeItem {
  MediaReference media;
  std::string id;    ///< empty: none
  std::string uuid;  ///< empty: none
  /// In place of media, where only sizes are asked for.
  std::optional<ItemSize> size;
};

/// A request to encode, whatever form its body has.
struct EncodeRequest {
  SharedJson json;    ///< what media and options refer to; may be null
  std::string model;  ///< empty: the only one
  std::vector<EncodeItem> items;
  OutputOptions output;
  bool use_cache = true;
  std::optional<std::chrono::milliseconds> timeout;
  std::string request_id;  ///< empty: that of the connection
};

struct EncodeRequestRules {
  std::size_t max_items = 256;  ///< --max-items-per-request
  bool takes_sizes = false;     ///< {"width": 640, "height": 480} is an item, too
  PromptLimits media;           ///< of all items, which are taken for those of one prompt
};

/// Reads a request. Its body is one of: JSON with `items` or `messages`; a form with parts `file`
/// and one part `options`, which is JSON without items; the bytes of an item, with options in the
/// query. Bytes stay in the body, which the items share.
/// @throws ApiError: 415 "unsupported_content_type" for other bodies; 400 "invalid_json",
/// "missing_field", "unknown_field", "invalid_value", "unsupported_dtype", "too_many_items",
/// "too_many_images", "too_many_videos".
/// Source: docs/serving.md, "POST /v1/encode".
[[nodiscard]] EncodeRequest read_encode_request(const Request& request,
                                                const EncodeRequestRules& rules);

/// What people have to know of the parameters.
inline constexpr std::string_view kWhereOptionsStand =
    "Options stand in the body; where that is an image or a video itself, in the query.";

/// The schemas of these bodies: JSON without sizes, JSON with them, and the form; and the options
/// in the query of a body that is an item.
[[nodiscard]] JsonObject encode_schema(SchemaSet& named);
[[nodiscard]] JsonObject plan_schema(SchemaSet& named);
[[nodiscard]] JsonObject encode_form_schema(SchemaSet& named);
[[nodiscard]] std::vector<JsonObject> encode_parameters();

}  // namespace fovea::serve
