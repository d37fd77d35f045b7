#include "serve/routes/encode_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "serve/api_error.h"
#include "serve/routes/conversation.h"
#include "serve/routes/output_request.h"
#include "serve/text/content_type.h"
#include "serve/text/multipart.h"
#include "serve/text/query.h"

namespace fovea::serve {
namespace {

void check_count(std::size_t items, const EncodeRequestRules& rules) {
  if (items <= rules.max_items) return;
  throw ApiError(400, "too_many_items",
                 "the request has " + std::to_string(items) + " items; at most " +
                     std::to_string(rules.max_items) + " are allowed (--max-items-per-request)",
                 "items");
}

/// Members that are known, but mean something that the engine does not do.
void refuse_member(Fields& fields, std::string_view name, const std::string& instead) {
  if (fields.find(name) != nullptr)
    refuse(fields.path(name), "this server does not take it; " + instead);
}

void read_processor(Fields& fields, EncodeRequest& request) {
  const Json* options = fields.find("processor_kwargs");
  if (options == nullptr) return;
  const std::string path = fields.path("processor_kwargs");
  if (!options->is_object()) refuse(path, "expected an object");
  request.processor.push_back({path, *options});
}

void read_fps(Fields& fields, MediaReference& media) {
  media.fps = fields.number("fps").value_or(media.fps);
  if (media.fps <= 0) refuse(fields.path("fps"), "expected a positive number");
}

std::vector<std::string> read_frames(const Json& frames, const std::string& path) {
  std::vector<std::string> urls;
  if (!frames.is_array() || frames.empty()) refuse(path, "expected an array of URLs");
  for (const Json& frame : frames) {
    if (!frame.is_string()) refuse(path, "expected an array of URLs");
    urls.push_back(frame.get<std::string>());
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
  const Json* frames = is_video ? fields.find("frames") : nullptr;
  std::optional<std::string> url = fields.text(member);
  media.param = fields.path(frames == nullptr ? member : "frames");
  if (frames != nullptr && url) refuse(media.param, "comes with video; give one of them");
  if (frames == nullptr && !url) {
    fields.refuse_others();
    throw ApiError(400, "missing_field", media.param + ": expected a URL or base64, got nothing",
                   media.param);
  }
  if (url) media.url = std::move(*url);
  if (frames != nullptr) media.frames = read_frames(*frames, media.param);
}

/// The item that `json` says it is; without `type` its members tell.
EncodeItem read_item(const Json& json, const std::string& where, const EncodeRequestRules& rules,
                     EncodeRequest& request) {
  Fields fields(json, where);
  EncodeItem item;
  const std::optional<std::string> type = fields.choice("type", {"image", "video"});
  const bool is_video =
      type ? *type == "video" : fields.find("video") != nullptr || fields.find("frames") != nullptr;
  item.media.modality = is_video ? Modality::kVideo : Modality::kImage;
  item.id = fields.text("id").value_or("");
  item.uuid = fields.text("uuid").value_or("");
  read_processor(fields, request);
  if (is_video) read_fps(fields, item.media);
  if (rules.takes_sizes && fields.find("width") != nullptr) {
    item.size = ItemSize{.width_px = read_size(fields, "width"),
                         .height_px = read_size(fields, "height"),
                         .num_frames = is_video ? read_size(fields, "num_frames", 1) : 1,
                         .modality = item.media.modality};
    item.media.param = where;
  } else {
    read_media(fields, is_video, item.media);
    if (is_video) {
      for (const char* member : {"num_frames", "max_frames", "frame_indices"})
        refuse_member(fields, member, "fps says how densely to sample");
    }
  }
  fields.refuse_others();
  return item;
}

/// The media of a conversation, in order.
void read_messages(const Json& messages, const EncodeRequestRules& rules, EncodeRequest& request) {
  Conversation conversation = parse_conversation(messages, "messages");
  if (conversation.empty()) refuse("messages", "expected an image or a video, got text alone");
  check_count(conversation.size(), rules);
  for (MediaPart& part : conversation) {
    EncodeItem item;
    item.media = std::move(part.reference);
    item.uuid = std::move(part.uuid).value_or("");
    request.items.push_back(std::move(item));
  }
}

void read_items(Fields& fields, const EncodeRequestRules& rules, EncodeRequest& request) {
  const Json* items = fields.find("items");
  if (const Json* messages = fields.find("messages")) {
    if (items != nullptr) refuse("messages", "comes with items; give one of them");
    return read_messages(*messages, rules, request);
  }
  if (items == nullptr) {
    fields.refuse_others();  // names the member that was meant
    throw ApiError(400, "missing_field", "items: expected an array, got nothing", "items");
  }
  if (!items->is_array() || items->empty()) refuse("items", "expected an array of items");
  check_count(items->size(), rules);
  for (std::size_t i = 0; i < items->size(); ++i) {
    request.items.push_back(
        read_item((*items)[i], "items[" + std::to_string(i) + "]", rules, request));
  }
}

/// The members that all forms of a body have.
void read_options(Fields& fields, const std::string* accept, EncodeRequest& request) {
  request.model = fields.text("model").value_or("");
  read_processor(fields, request);
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
  const Json body = parse_json_object(request.text());
  Fields fields(body, "");
  read_options(fields, find_header(request.headers, "Accept"), result);
  read_items(fields, rules, result);
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

/// Turns options that are no text from text into what they are. What does not read as such stays
/// text, which is refused where it is read.
void give_types(Json& options) {
  constexpr std::array<const char*, 8> kTyped{"/output/normalize",
                                              "/fps",
                                              "/priority",
                                              "/timeout_ms",
                                              "/processor_kwargs/min_pixels",
                                              "/processor_kwargs/max_pixels",
                                              "/width",
                                              "/height"};
  for (const char* place : kTyped) {
    const Json::json_pointer pointer(place);
    if (!options.contains(pointer) || !options[pointer].is_string()) continue;
    Json typed = Json::parse(options[pointer].get<std::string>(), nullptr, false);
    if (typed.is_number() || typed.is_boolean()) options[pointer] = std::move(typed);
  }
  const Json::json_pointer include("/output/include");
  if (!options.contains(include) || !options[include].is_string()) return;
  Json names = Json::array();
  std::string rest = options[include].get<std::string>();
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    names.push_back(rest.substr(0, end));
    rest.erase(0, end + 1);
  }
  options[include] = std::move(names);
}

EncodeRequest read_bytes(const Request& request, const std::string& type) {
  EncodeRequest result;
  Json options = query_object(request.query);
  give_types(options);
  Fields fields(options, "");
  read_options(fields, find_header(request.headers, "Accept"), result);
  EncodeItem item;
  item.media = bytes_of_body(request, *request.body, type, "body");
  item.id = fields.text("id").value_or("");
  item.uuid = fields.text("uuid").value_or("");
  read_fps(fields, item.media);
  fields.refuse_others();
  result.items.push_back(std::move(item));
  return result;
}

EncodeRequest read_form(const Request& request, const std::string& boundary,
                        const EncodeRequestRules& rules) {
  EncodeRequest result;
  Json options = Json::object();
  bool has_options = false;
  for (const FormPart& part : parse_multipart(*request.body, boundary, rules.max_items + 2)) {
    if (part.name == "options") {
      if (std::exchange(has_options, true)) refuse("options", "comes twice in the form");
      options =
          parse_json_object({reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size()});
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
  check_count(result.items.size(), rules);
  Fields fields(options, "");
  read_options(fields, find_header(request.headers, "Accept"), result);
  for (EncodeItem& item : result.items) read_fps(fields, item.media);
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
