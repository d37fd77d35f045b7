#include "serve/routes/fovea/encode_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "serve/api_error.h"
#include "serve/routes/call_limits.h"
#include "serve/routes/conversation.h"
#include "serve/routes/output_options.h"
#include "serve/routes/processing_options.h"
#include "serve/text/headers.h"
#include "serve/text/multipart.h"
#include "serve/text/query.h"

namespace fovea::serve {
namespace {

/// Members that are known, but mean something that the engine does not do.
void refuse_member(Fields& fields, std::string_view name, const std::string& instead) {
  if (fields.find(name)) refuse(fields.path(name), "this server does not take it; " + instead);
}

/// Options for the processor, which those that the item has already come before.
void read_processor(Fields& fields, MediaReference& media) {
  constexpr const char* kMember = "processor_kwargs";
  if (const auto options = fields.find(kMember)) {
    add_item_options(*options, fields.path(kMember), media);
  }
}

void read_fps(Fields& fields, MediaReference& media) {
  const std::optional<double> fps = fields.number("fps");
  if (fps && *fps <= 0) refuse(fields.path("fps"), "expected a positive number");
  if (fps) media.fps = fps;
}

std::vector<std::string_view> read_frames(const JsonView& frames, const std::string& path) {
  if (!frames.is_array() || frames.num_elements() == 0) refuse(path, "expected an array of URLs");
  std::vector<std::string_view> urls;
  urls.reserve(frames.num_elements());
  for (std::size_t i = 0; i < frames.num_elements(); ++i) {
    if (!frames.element(i).is_string()) refuse(path, "expected an array of URLs");
    urls.push_back(frames.element(i).as_text());
  }
  return urls;
}

/// A number of pixels or frames.
std::int64_t read_size(Fields& fields, std::string_view name, std::int64_t otherwise = 0) {
  const std::int64_t size = fields.integer(name).value_or(otherwise);
  if (size < 1) refuse(fields.path(name), "expected a positive number");
  return size;
}

void read_media(Fields& fields, bool is_video, MediaReference& media) {
  const char* member = is_video ? "video" : "image";
  const std::optional<JsonView> frames = is_video ? fields.find("frames") : std::nullopt;
  const std::optional<std::string_view> url = fields.text(member);
  media.param = fields.path(frames ? "frames" : member);
  if (frames && url) refuse(media.param, "comes with video; give one of them");
  if (!frames && !url) {
    fields.refuse_others();
    refuse(media.param, "expected a URL or base64, got nothing", "missing_field");
  }
  if (url) media.url = *url;
  if (frames) media.frames = read_frames(*frames, media.param);
}

/// The item that `json` says it is; without `type` its members tell.
EncodeItem read_item(const JsonView& json, const std::string& where,
                     const EncodeRequestRules& rules) {
  Fields fields(json, where);
  EncodeItem item;
  const std::optional<std::string_view> type = fields.choice("type", {"image", "video"});
  const bool is_video = type ? *type == "video" : fields.find("video") || fields.find("frames");
  item.media.modality = is_video ? Modality::kVideo : Modality::kImage;
  item.id = fields.text("id").value_or("");
  item.uuid = fields.text("uuid").value_or("");
  read_processor(fields, item.media);
  if (is_video) read_fps(fields, item.media);
  if (rules.takes_sizes && fields.find("width")) {
    item.size = ItemSize{.width_px = read_size(fields, "width"),
                         .height_px = read_size(fields, "height"),
                         .num_frames = is_video ? read_size(fields, "num_frames", 1) : 1,
                         .modality = item.media.modality};
    item.media.param = where;
  } else {
    read_media(fields, is_video, item.media);
    if (is_video) {
      for (const char* member : {"num_frames", "max_frames", "frame_indices"})
        refuse_member(fields, member, "fps or processor_kwargs say how densely to sample");
    }
  }
  fields.refuse_others();
  return item;
}

/// The media of a conversation, in order.
void read_messages(const JsonView& messages, const EncodeRequestRules& rules,
                   EncodeRequest& request) {
  Conversation conversation =
      parse_conversation(messages, "messages", {.max_items = rules.max_items});
  if (conversation.empty()) refuse("messages", "expected an image or a video, got text alone");
  for (MediaPart& part : conversation) {
    EncodeItem item;
    item.media = std::move(part.reference);
    item.uuid = part.uuid.value_or("");
    request.items.push_back(std::move(item));
  }
}

void read_items(Fields& fields, const EncodeRequestRules& rules, EncodeRequest& request) {
  const std::optional<JsonView> items = fields.find("items");
  if (const std::optional<JsonView> messages = fields.find("messages")) {
    if (items) refuse("messages", "comes with items; give one of them");
    return read_messages(*messages, rules, request);
  }
  if (!items) {
    fields.refuse_others();  // names the member that was meant
    refuse("items", "expected an array, got nothing", "missing_field");
  }
  if (!items->is_array() || items->num_elements() == 0)
    refuse("items", "expected an array of items");
  const std::size_t count = items->num_elements();
  check_item_count(count, rules.max_items);
  for (std::size_t i = 0; i < count; ++i) {
    request.items.push_back(read_item(items->element(i), element_path("items", i), rules));
  }
}

/// The members that all forms of a body have.
void read_options(Fields& fields, const std::string* accept, EncodeRequest& request) {
  request.model = fields.text("model").value_or("");
  (void)fields.find("processor_kwargs");  // read when there are items
  request.output = read_output(fields, accept);
  request.use_cache = fields.choice("cache", {"use", "bypass"}).value_or("use") == "use";
  (void)fields.integer("priority");  // all requests have the same
  request.request_id = fields.text("request_id").value_or("");
  if (const std::optional<std::int64_t> timeout = fields.integer("timeout_ms")) {
    if (*timeout < 1) refuse(fields.path("timeout_ms"), "expected a positive number");
    request.timeout = std::chrono::milliseconds(std::min(*timeout, std::int64_t{86'400'000}));
  }
}

EncodeRequest read_json(const Request& request, const EncodeRequestRules& rules) {
  EncodeRequest result;
  result.json = parse_json_object(request.text(), request.body);
  Fields fields(result.json->root(), "");
  read_options(fields, find_header(request.headers, "Accept"), result);
  read_items(fields, rules, result);
  for (EncodeItem& item : result.items) read_processor(fields, item.media);
  fields.refuse_others();
  return result;
}

/// Whether bytes of no known type begin as a container of a video does.
/// Source: ISO/IEC 14496-12, 4.3; RFC 8794, section 8.1; RIFF.
bool looks_like_video(std::span<const std::uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              std::min<std::size_t>(bytes.size(), 12));
  return text.substr(std::min<std::size_t>(4, text.size())).starts_with("ftyp") ||
         text.starts_with("\x1a\x45\xdf\xa3") ||
         (text.starts_with("RIFF") && text.ends_with("AVI "));
}

/// An item whose bytes are in the body. @param type its content type; empty: not known.
MediaReference bytes_of_body(const Request& request, std::span<const std::uint8_t> bytes,
                             std::string_view type, std::string param) {
  MediaReference media;
  const bool is_known = type.starts_with("image/") || type.starts_with("video/");
  if (!is_known && !type.empty() && type != "application/octet-stream") {
    throw ApiError(415, "unsupported_content_type",
                   param + ": " + shortened(type, 60) + " is neither an image nor a video", param);
  }
  if (bytes.empty()) refuse(param, "expected an image or a video, got no bytes");
  const bool is_video = is_known ? type.starts_with("video/") : looks_like_video(bytes);
  media.modality = is_video ? Modality::kVideo : Modality::kImage;
  media.bytes = bytes;
  media.owner = request.body;
  media.param = std::move(param);
  return media;
}

/// Options of a query that are no text.
constexpr std::array<std::string_view, 8> kScalars{"output.normalize",
                                                   "fps",
                                                   "priority",
                                                   "timeout_ms",
                                                   "processor_kwargs.min_pixels",
                                                   "processor_kwargs.max_pixels",
                                                   "width",
                                                   "height"};
constexpr std::array<std::string_view, 1> kLists{"output.include"};

EncodeRequest read_bytes(const Request& request, const std::string& type) {
  EncodeRequest result;
  result.json = query_object(request.query, {.scalars = kScalars, .lists = kLists});
  Fields fields(result.json->root(), "");
  read_options(fields, find_header(request.headers, "Accept"), result);
  EncodeItem item;
  item.media = bytes_of_body(request, *request.body, type, "body");
  item.id = fields.text("id").value_or("");
  item.uuid = fields.text("uuid").value_or("");
  read_fps(fields, item.media);
  read_processor(fields, item.media);
  fields.refuse_others();
  result.items.push_back(std::move(item));
  return result;
}

EncodeRequest read_form(const Request& request, const std::string& boundary,
                        const EncodeRequestRules& rules) {
  EncodeRequest result;
  std::string_view options = "{}";
  bool has_options = false;
  for (const FormPart& part : parse_multipart(*request.body, boundary, rules.max_items + 2)) {
    if (part.name == "options") {
      if (std::exchange(has_options, true)) refuse("options", "comes twice in the form");
      options = {reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size()};
      continue;
    }
    if (part.name != "file") {
      throw ApiError(400, "unknown_field",
                     "the form has a part " + shortened(part.name, 60) +
                         "; expected parts file and one part options",
                     shortened(part.name, 60));
    }
    EncodeItem item;
    item.media = bytes_of_body(request, part.bytes, part.content_type,
                               "file[" + std::to_string(result.items.size()) + "]");
    result.items.push_back(std::move(item));
  }
  if (result.items.empty())
    throw ApiError(400, "missing_field", "the form has no part file", "file");
  check_item_count(result.items.size(), rules.max_items);
  result.json = parse_json_object(options, request.body);
  Fields fields(result.json->root(), "");
  read_options(fields, find_header(request.headers, "Accept"), result);
  for (EncodeItem& item : result.items) {
    read_fps(fields, item.media);
    read_processor(fields, item.media);
  }
  fields.refuse_others();
  return result;
}

EncodeRequest read_any(const Request& request, const EncodeRequestRules& rules) {
  const std::string* header = find_header(request.headers, "Content-Type");
  const std::string text = header == nullptr ? "application/json" : *header;
  const std::optional<ContentType> type = parse_content_type(text);
  const std::string name = type ? type->type : "";
  const bool is_bytes = name.starts_with("image/") || name.starts_with("video/") ||
                        name == "application/octet-stream";
  if (is_bytes) return read_bytes(request, name);
  const bool is_form = name == "multipart/form-data";
  const bool has_query = !request.query.empty();
  if (has_query && header != nullptr && (is_form || name == "application/json"))
    refuse("query", "options stand in the body, unless that is the image or video itself");
  if (!has_query && name == "application/json") return read_json(request, rules);
  if (is_form) {
    const std::string* boundary = find_header(type->parameters, "boundary");
    return read_form(request, boundary == nullptr ? "" : *boundary, rules);
  }
  throw ApiError(415, "unsupported_content_type",
                 "expected application/json, multipart/form-data, image/*, video/* or "
                 "application/octet-stream, got " +
                     (header == nullptr ? "no type" : shortened(text, 60)));
}

}  // namespace

EncodeRequest read_encode_request(const Request& request, const EncodeRequestRules& rules) {
  EncodeRequest result = read_any(request, rules);
  MediaCounter counter(rules.media);
  for (const EncodeItem& item : result.items) counter.count(item.media);
  return result;
}

}  // namespace fovea::serve
