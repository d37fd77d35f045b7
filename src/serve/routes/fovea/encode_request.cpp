#include "serve/routes/fovea/encode_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/check.h"
#include "fovea/media_io.h"
#include "serve/api_error.h"
#include "serve/media/frame_lists.h"
#include "serve/routes/call_limits.h"
#include "serve/routes/conversation.h"
#include "serve/routes/output_options.h"
#include "serve/routes/processing_options.h"
#include "serve/text/headers.h"
#include "serve/text/multipart.h"
#include "serve/text/object_table.h"
#include "serve/text/query.h"

namespace fovea::serve {
namespace {

/// The members that all forms of a body have.
struct OptionsBody : BodyObject {
  std::optional<std::string_view> model;
  std::optional<JsonView> output;
  std::optional<std::string_view> cache;
  std::optional<JsonView> processor_kwargs;
  std::optional<std::int64_t> priority;
  std::optional<std::string_view> request_id;
  std::optional<std::int64_t> timeout_ms;
};
/// JSON, which names its items.
struct JsonBody : OptionsBody {
  std::optional<JsonView> items;
  std::optional<JsonView> messages;
};
/// The options of items whose bytes are in a form, and of the one whose bytes are the body.
struct FormOptions : OptionsBody {
  std::optional<double> fps;
};
struct QueryOptions : FormOptions {
  std::optional<std::string_view> id;
  std::optional<std::string_view> uuid;
};

/// What tells the kind of an item.
struct ItemKind : BodyObject {
  std::optional<std::string_view> type;
  std::optional<JsonView> video;
  std::optional<JsonView> frames;
  std::optional<JsonView> width;
  std::optional<JsonView> fps;
  std::optional<JsonView> num_frames;
};
struct ItemBody : BodyObject {
  std::optional<std::string_view> type;
  std::optional<std::string_view> id;
  std::optional<std::string_view> uuid;
  std::optional<JsonView> processor_kwargs;
};
struct ImageBody : ItemBody {
  std::optional<std::string_view> image;
};
struct VideoBody : ItemBody {
  std::optional<double> fps;
  std::optional<std::string_view> video;
  std::optional<std::vector<std::string_view>> frames;
};
struct SizeBody : ItemBody {
  std::optional<double> fps;
  std::optional<std::int64_t> width;
  std::optional<std::int64_t> height;
  std::optional<std::int64_t> num_frames;
};

constexpr std::array<std::string_view, 2> kCacheUses{"use", "bypass"};
constexpr std::array<std::string_view, 2> kItemTypes{"image", "video"};
constexpr auto kImageType = std::array{kItemTypes[0]};
constexpr auto kVideoType = std::array{kItemTypes[1]};

constexpr std::array<Member<OptionsBody>, 7> kOptionsMembers{
    {{&OptionsBody::model, {.name = "model", .about = "The model; without it the only one"}},
     {&OptionsBody::output,
      {.name = "output", .about = "What comes back, and how", .schema = output_schema}},
     {&OptionsBody::cache,
      {.name = "cache",
       .about = "Whether rows that are there already are taken",
       .choices = kCacheUses}},
     {&OptionsBody::processor_kwargs,
      {.name = "processor_kwargs",
       .about = "Options of the processor for all items, which those of an item come before",
       .schema = schema::object}},
     {&OptionsBody::priority, {.name = "priority", .about = "Not used: all requests are equal"}},
     {&OptionsBody::request_id,
      {.name = "request_id", .about = "Name of the request in the reply"}},
     {&OptionsBody::timeout_ms,
      {.name = "timeout_ms", .about = "Most milliseconds until the reply", .least = 1}}}};
constexpr MemberFacts kFpsFacts{
    .name = "fps", .about = "Frames per second at which a video is sampled", .above = 0};
/// The same among options of the processor.
constexpr const char* kFpsOption = "fps";
constexpr MemberFacts kIdFacts{.name = "id", .about = "Name of the item in the reply"};
constexpr MemberFacts kUuidFacts{.name = "uuid", .about = "Name of the item for vLLM's caches"};
constexpr std::array<Member<FormOptions>, 1> kFormFps{{{&FormOptions::fps, kFpsFacts}}};
constexpr auto kFormMembers = joined<FormOptions>(kOptionsMembers, kFormFps);
constexpr ObjectTable<FormOptions> kFormOptions{"FormOptions", kFormMembers, Others::kRefused};
constexpr auto kQueryMembers = joined<QueryOptions>(
    kFormMembers, std::array<Member<QueryOptions>, 2>{
                      {{&QueryOptions::id, kIdFacts}, {&QueryOptions::uuid, kUuidFacts}}});
constexpr ObjectTable<QueryOptions> kQueryOptions{"QueryOptions", kQueryMembers, Others::kRefused};

constexpr std::array<Member<ItemKind>, 6> kKindMembers{
    {{&ItemKind::type, {.name = "type", .about = "", .choices = kItemTypes}},
     {&ItemKind::video, {.name = "video", .about = ""}},
     {&ItemKind::frames, {.name = "frames", .about = ""}},
     {&ItemKind::width, {.name = "width", .about = ""}},
     {&ItemKind::fps, {.name = "fps", .about = ""}},
     {&ItemKind::num_frames, {.name = "num_frames", .about = ""}}}};
constexpr ObjectTable<ItemKind> kItemKind{"ItemKind", kKindMembers};

constexpr std::array<Member<ItemBody>, 4> item_members(std::span<const std::string_view> type) {
  return {{{&ItemBody::type,
            {.name = "type", .about = "What it is; without it its members tell", .choices = type}},
           {&ItemBody::id, kIdFacts},
           {&ItemBody::uuid, kUuidFacts},
           {&ItemBody::processor_kwargs,
            {.name = "processor_kwargs",
             .about = "Options of the processor for this item",
             .schema = schema::object}}}};
}
constexpr auto kImageMembers = joined<ImageBody>(
    item_members(kImageType),
    std::array<Member<ImageBody>, 1>{{{&ImageBody::image,
                                       {.name = "image",
                                        .about = "A data:, http(s): or file: URL, or base64",
                                        .is_required = true}}}});
constexpr Refused kDensity{
    "this server does not take it; fps or processor_kwargs say how densely to sample"};
constexpr auto kVideoMembers = joined<VideoBody>(
    item_members(kVideoType),
    std::array<Member<VideoBody>, 6>{
        {{&VideoBody::fps, kFpsFacts},
         {&VideoBody::video,
          {.name = "video", .about = "A data:, http(s): or file: URL, or base64, of a container"}},
         {&VideoBody::frames,
          {.name = "frames",
           .about = "In place of it, the sampled frames, each given as an image is",
           .least = 1}},
         {kDensity, {.name = "num_frames", .about = ""}},
         {kDensity, {.name = "max_frames", .about = ""}},
         {kDensity, {.name = "frame_indices", .about = ""}}}});
constexpr std::array<Member<SizeBody>, 2> kSides{
    {{&SizeBody::width, {.name = "width", .about = "Pixels", .least = 1, .is_required = true}},
     {&SizeBody::height, {.name = "height", .about = "Pixels", .least = 1, .is_required = true}}}};
constexpr auto kImageSizeMembers = joined<SizeBody>(item_members(kImageType), kSides);
constexpr auto kVideoSizeMembers = joined<SizeBody>(
    item_members(kVideoType), kSides,
    std::array<Member<SizeBody>, 2>{
        {{&SizeBody::fps, kFpsFacts},
         {&SizeBody::num_frames,
          {.name = "num_frames", .about = "Sampled frames; without it 1", .least = 1}}}});
constexpr ObjectTable<ImageBody> kImageItem{"ImageItem", kImageMembers, Others::kRefused};
constexpr ObjectTable<VideoBody> kVideoItem{"VideoItem", kVideoMembers, Others::kRefused};
constexpr ObjectTable<SizeBody> kImageSize{"ImageSize", kImageSizeMembers, Others::kRefused};
constexpr ObjectTable<SizeBody> kVideoSize{"VideoSize", kVideoSizeMembers, Others::kRefused};

template <SchemaOf... kItems>
constexpr std::array<Member<JsonBody>, 2> media_members() {
  return {{{&JsonBody::items,
            {.name = "items",
             .about = "The images and videos; they, or messages",
             .schema = schema::list<schema::either<kItems...>, 1>}},
           {&JsonBody::messages,
            {.name = "messages",
             .about = "In place of items, a conversation with the images and videos",
             .schema = conversation_schema}}}};
}
constexpr auto kEncodeMembers = joined<JsonBody>(
    kOptionsMembers, media_members<schema::body<kImageItem>, schema::body<kVideoItem>>());
// What has members that it needs comes first: readers take the first that fits.
constexpr auto kPlanMembers = joined<JsonBody>(
    kOptionsMembers, media_members<schema::body<kImageSize>, schema::body<kVideoSize>,
                                   schema::body<kImageItem>, schema::body<kVideoItem>>());
constexpr ObjectTable<JsonBody> kEncodeBody{"EncodeBody", kEncodeMembers, Others::kRefused};
constexpr ObjectTable<JsonBody> kPlanBody{"PlanBody", kPlanMembers, Others::kRefused};

/// Options for the processor, which those that the item has already come before.
void add_processor(const std::optional<JsonView>& options, const BodyObject& object,
                   MediaReference& media) {
  if (options) add_item_options(*options, object.path("processor_kwargs"), media);
}

/// Whether the server samples an item: a video in a container, not its size, and no frames, of
/// which `fps` says how they were sampled.
bool is_sampled(const EncodeItem& item) {
  return item.media.modality == Modality::kVideo && !item.size && !comes_in_frames(item.media);
}

/// Refuses a number of frames beside the rate of an item. @param where `fps` stands.
void check_no_count(const EncodeItem& item, const std::string& where) {
  if (!item.media.fps || !is_sampled(item)) return;
  const auto count = item.media.options.find("num_frames");
  if (count == item.media.options.end()) return;
  refuse(where, "expected either fps or num_frames, got both; the other is " + count->second.param);
}

/// Sets the rate that an object says of an item, behind the options that it says.
void set_fps(const std::optional<double>& fps, const BodyObject& object, EncodeItem& item) {
  item.media.fps = fps;
  if (!fps || !is_sampled(item)) return;
  const std::string where = object.path(kFpsFacts.name);
  if (const auto other = item.media.options.find(kFpsOption); other != item.media.options.end()) {
    const auto& [text, param] = other->second;
    double value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc() || value != *fps) {
      refuse(where,
             cat("expected one rate, got ", *fps, ", and ", shortened(text, 60), " in ", param));
    }
  }
  check_no_count(item, where);
}

/// Adds options of the request to an item with all of its own, which come before them; so does its
/// `fps`. @param where that stands.
void add_request_options(const JsonBody& body, const std::string& where, EncodeItem& item) {
  const bool has_option = item.media.options.contains(kFpsOption);
  add_processor(body.processor_kwargs, body, item.media);
  if (item.media.fps && is_sampled(item) && !has_option) item.media.options.erase(kFpsOption);
  check_no_count(item, where);
}

/// The item with what all kinds have.
EncodeItem item_of(const ItemBody& body, Modality modality) {
  EncodeItem item;
  item.media.modality = modality;
  item.id = body.id.value_or("");
  item.uuid = body.uuid.value_or("");
  add_processor(body.processor_kwargs, body, item.media);
  return item;
}

EncodeItem read_image(const JsonView& json, const std::string& where) {
  const ImageBody body = read_object(kImageItem, json, where);
  EncodeItem item = item_of(body, Modality::kImage);
  item.media.param = body.path("image");
  item.media.url = *body.image;
  return item;
}

EncodeItem read_video(const JsonView& json, const std::string& where) {
  const VideoBody body = read_object(kVideoItem, json, where);
  EncodeItem item = item_of(body, Modality::kVideo);
  item.media.param = body.path(body.frames ? "frames" : "video");
  if (body.frames && body.video) refuse(item.media.param, "comes with video; give one of them");
  if (!body.frames && !body.video) {
    refuse(item.media.param, "expected a URL or base64, got nothing", "missing_field");
  }
  item.media.url = body.video.value_or("");
  if (body.frames) item.media.frames = *body.frames;
  set_fps(body.fps, body, item);
  return item;
}

EncodeItem read_size(const JsonView& json, const std::string& where, Modality modality) {
  const bool is_video = modality == Modality::kVideo;
  const SizeBody body = read_object(is_video ? kVideoSize : kImageSize, json, where);
  EncodeItem item = item_of(body, modality);
  item.media.param = where;
  item.size = ItemSize{.width_px = *body.width,
                       .height_px = *body.height,
                       .num_frames = body.num_frames.value_or(1),
                       .modality = modality};
  set_fps(body.fps, body, item);
  return item;
}

/// The item that `json` says it is; without `type` its members tell.
EncodeItem read_item(const JsonView& json, const std::string& where,
                     const EncodeRequestRules& rules) {
  const ItemKind kind = read_object(kItemKind, json, where);
  const bool is_size = rules.takes_sizes && kind.width;
  const bool has_frames = kind.video || kind.frames || (is_size && (kind.fps || kind.num_frames));
  const bool is_video = kind.type ? *kind.type == "video" : has_frames;
  if (is_size) return read_size(json, where, is_video ? Modality::kVideo : Modality::kImage);
  return is_video ? read_video(json, where) : read_image(json, where);
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

void read_items(const JsonBody& body, const EncodeRequestRules& rules, EncodeRequest& request) {
  if (body.messages) {
    if (body.items) refuse("messages", "comes with items; give one of them");
    return read_messages(*body.messages, rules, request);
  }
  if (!body.items) refuse("items", "expected an array, got nothing", "missing_field");
  if (!body.items->is_array() || body.items->num_elements() == 0)
    refuse("items", "expected an array of items");
  const std::size_t count = body.items->num_elements();
  check_item_count(count, rules.max_items);
  for (std::size_t i = 0; i < count; ++i) {
    request.items.push_back(read_item(body.items->element(i), element_path("items", i), rules));
  }
}

/// Takes the options but those of items.
void take_options(const OptionsBody& body, const std::string* accept, EncodeRequest& request) {
  constexpr std::int64_t kDayMs = 86'400'000;
  request.model = body.model.value_or("");
  request.output = read_output(body.output, accept);
  request.use_cache = body.cache.value_or("use") == "use";
  request.request_id = body.request_id.value_or("");
  if (body.timeout_ms)
    request.timeout = std::chrono::milliseconds(std::min(*body.timeout_ms, kDayMs));
}

EncodeRequest read_json(const Request& request, const EncodeRequestRules& rules) {
  EncodeRequest result;
  result.json = parse_json_object(request.text(), request.body);
  const JsonBody body =
      read_object(rules.takes_sizes ? kPlanBody : kEncodeBody, result.json->root());
  take_options(body, find_header(request.headers, "Accept"), result);
  read_items(body, rules, result);
  for (std::size_t i = 0; i < result.items.size(); ++i) {
    const BodyObject place{element_path("items", i)};
    add_request_options(body, place.path(kFpsFacts.name), result.items[i]);
  }
  return result;
}

/// Whether bytes of no known type begin as a container of a video does.
/// Source: ISO/IEC 14496-12, 4.3; RFC 8794, section 8.1; RIFF.
bool looks_like_video(std::span<const std::uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              std::min<std::size_t>(bytes.size(), 12));
  if (text.substr(std::min<std::size_t>(4, text.size())).starts_with("ftyp")) {
    return !begins_as_image(bytes);  // AVIF and HEIC differ by their brands alone
  }
  return text.starts_with("\x1a\x45\xdf\xa3") ||
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

/// The members of a query. Two options of the processor are described, and all are read.
std::vector<QueryMember> query_members() {
  static constexpr MemberFacts kPixels{.name = "", .about = "An option of the processor"};
  std::vector<QueryMember> members;
  add_query_members(kQueryOptions, "", members);
  add_output_members(members);
  members.push_back({"processor_kwargs.min_pixels", &kPixels, detail::ValueKind::kInteger});
  members.push_back({"processor_kwargs.max_pixels", &kPixels, detail::ValueKind::kInteger});
  members.push_back({"processor_kwargs.", &kPixels, detail::ValueKind::kNumber});
  return members;
}

EncodeRequest read_bytes(const Request& request, const std::string& type) {
  EncodeRequest result;
  result.json = query_object(request.query, query_members());
  const QueryOptions options = read_object(kQueryOptions, result.json->root());
  take_options(options, find_header(request.headers, "Accept"), result);
  EncodeItem item;
  item.media = bytes_of_body(request, *request.body, type, "body");
  item.id = options.id.value_or("");
  item.uuid = options.uuid.value_or("");
  if (options.fps && item.media.modality == Modality::kImage) {
    refuse(options.path(kFpsFacts.name), "expected it with a video, got an image");
  }
  add_processor(options.processor_kwargs, options, item.media);
  set_fps(options.fps, options, item);
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
  const FormOptions body = read_object(kFormOptions, result.json->root());
  take_options(body, find_header(request.headers, "Accept"), result);
  for (EncodeItem& item : result.items) {
    add_processor(body.processor_kwargs, body, item.media);
    set_fps(body.fps, body, item);
  }
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

JsonObject encode_schema(SchemaSet& named) { return describe(kEncodeBody, named); }
JsonObject plan_schema(SchemaSet& named) { return describe(kPlanBody, named); }

JsonObject encode_form_schema(SchemaSet& named) {
  const JsonObject parts{{"file", schema::list_of(schema::bytes(named), 1)},
                         {"options", describe(kFormOptions, named)}};
  return {{"type", "object"},
          {"properties", parts},
          {"required", JsonArray::of("file")},
          {"additionalProperties", false}};
}

std::vector<JsonObject> encode_parameters() { return query_parameters(query_members()); }

}  // namespace fovea::serve
