#include "serve/routes/processing_options.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "core/check.h"
#include "core/json_writer.h"
#include "fovea/media_io.h"
#include "serve/api_error.h"
#include "serve/media/media_source.h"

namespace fovea::serve {
namespace {

constexpr const char* kKwargs = "mm_processor_kwargs";
constexpr const char* kMediaIoKwargs = "media_io_kwargs";

/// How media are read: `media_io_kwargs`. What of it can be honoured read_media_io_kwargs() says.
struct MediaIoBody : BodyObject {
  std::optional<JsonView> image;
  std::optional<JsonView> video;
};
struct ImageIo : BodyObject {
  std::optional<std::string_view> image_mode;
  std::optional<JsonView> rgba_background_color;
};
struct VideoIo : BodyObject {
  std::optional<double> fps;
  std::optional<std::int64_t> num_frames;
};
constexpr std::array<std::string_view, 1> kImageModes{"RGB"};
constexpr std::array<Member<ImageIo>, 2> kImageIoMembers{
    {{&ImageIo::image_mode,
      {.name = "image_mode", .about = "How images are decoded", .choices = kImageModes}},
     {&ImageIo::rgba_background_color,
      {.name = "rgba_background_color",
       .about = "What shows through transparent pixels; only that of the server"}}}};
constexpr ObjectTable<ImageIo> kImageIo{"ImageIoOptions", kImageIoMembers, Others::kRefused};
constexpr std::array<Member<VideoIo>, 2> kVideoIoMembers{
    {{&VideoIo::fps, {.name = "fps", .about = "Frames per second to sample", .above = 0}},
     {&VideoIo::num_frames,
      {.name = "num_frames", .about = "Only -1, all; fps says how densely to sample"}}}};
constexpr ObjectTable<VideoIo> kVideoIo{"VideoIoOptions", kVideoIoMembers, Others::kRefused};
constexpr std::array<Member<MediaIoBody>, 2> kMediaIoMembers{
    {{&MediaIoBody::image,
      {.name = "image", .about = "Of images", .schema = schema::body<kImageIo>}},
     {&MediaIoBody::video,
      {.name = "video", .about = "Of videos", .schema = schema::body<kVideoIo>}}}};
constexpr ObjectTable<MediaIoBody> kMediaIo{"MediaIoOptions", kMediaIoMembers, Others::kRefused};

/// Calls check(name, path, value) for every member of an object that is not null.
template <typename Check>
void for_each_member(const JsonView& object, const std::string& where, const Check& check) {
  detail::check_object(object, where);
  const BodyObject place{where};
  for (std::size_t i = 0; i < object.num_members(); ++i) {
    const std::string_view name = object.key(i);
    if (object.member(i).is_null()) continue;
    check(name, place.path(shortened(name, 60)), object.member(i));
  }
}

/// As read_media_io_kwargs(), with the place in the request.
MediaIo read_media_io(const JsonView& kwargs, const MediaOptions& media) {
  try {
    return read_media_io_kwargs(to_json_text(kwargs), kMediaIoKwargs, media);
  } catch (const Error& error) {
    // "media_io_kwargs: video.fps: expected ...".
    const std::string text = error.what();
    const std::size_t begin = text.find(": ") + 2;
    const std::size_t end = text.find(": ", begin);
    refuse(cat(kMediaIoKwargs, ".", text.substr(begin, end - begin)), text.substr(end + 2));
  }
}

/// The object if it has members.
std::optional<JsonView> if_any(const JsonView& object) {
  return object.num_members() > 0 ? std::optional(object) : std::nullopt;
}

}  // namespace

void add_item_options(const JsonView& kwargs, const std::string& where, MediaReference& reference) {
  constexpr const char* kImages = "images_kwargs";
  constexpr const char* kVideos = "videos_kwargs";
  const bool is_image = reference.modality == Modality::kImage;
  const auto add = [&](std::string_view name, const std::string& path, const JsonView& value) {
    std::string json;
    value.append_to(json);
    reference.options.try_emplace(std::string(name), ItemOption{std::move(json), path});
  };
  // What is said of one modality comes before what is said of both.
  for_each_member(kwargs, where,
                  [&](std::string_view name, const std::string& path, JsonView value) {
                    const bool is_own = name == (is_image ? kImages : kVideos);
                    if (is_own) for_each_member(value, path, add);
                  });
  for_each_member(kwargs, where,
                  [&](std::string_view name, const std::string& path, JsonView value) {
                    if (name != kImages && name != kVideos) add(name, path, value);
                  });
}

void add_named_options(const NamedValues& options, const BodyObject& where,
                       MediaReference& reference) {
  for (const auto& [name, value] : options) {
    std::string json;
    value.append_to(json);
    reference.options.try_emplace(std::string(name), ItemOption{std::move(json), where.path(name)});
  }
}

void check_item_options(const MediaReference& reference, const Service& service) {
  if (reference.options.empty()) return;
  try {
    service.engine().check_item_options(reference.modality, options_text(reference));
  } catch (const Error& error) {
    // "mm_processor_kwargs: size.longest_edge: expected ...".
    const std::string_view text = error.what();
    const std::size_t begin = text.find(": ") + 2;
    const std::size_t end = text.find(": ", begin);
    const std::string_view path = text.substr(begin, end - begin);
    const std::string_view key = path.substr(0, path.find_first_of(".["));
    const auto option = reference.options.find(std::string(key));
    if (end == text.npos || option == reference.options.end()) {
      throw ApiError(400, "invalid_value", std::string(text),
                     reference.options.begin()->second.param);
    }
    const std::string where = option->second.param + std::string(path.substr(key.size()));
    refuse(where, std::string(text.substr(end + 2)));
  }
}

void apply_options(const ProcessingOptions& options, const Service& service,
                   MediaReference& reference) {
  if (!reference.fps) reference.fps = options.fps;
  if (options.mm_processor_kwargs) {
    add_item_options(*options.mm_processor_kwargs, kKwargs, reference);
  }
  check_item_options(reference, service);
}

ProcessingOptions read_processing_options(const ProcessingMembers& body, const Service& service) {
  ProcessingOptions options;
  if (body.mm_processor_kwargs) {
    if (!body.mm_processor_kwargs->is_object()) {
      refuse(kKwargs, "expected an object, got " + body.mm_processor_kwargs->summary());
    }
    options.mm_processor_kwargs = if_any(*body.mm_processor_kwargs);
  }
  if (!body.media_io_kwargs) return options;
  const auto io = read_object(kMediaIo, *body.media_io_kwargs, kMediaIoKwargs);
  if (io.image) {
    (void)read_object(kImageIo, *io.image, io.path("image"));
    options.image_io_kwargs = if_any(*io.image);
  }
  if (io.video) {
    (void)read_object(kVideoIo, *io.video, io.path("video"));
    options.video_io_kwargs = if_any(*io.video);
  }
  options.fps = read_media_io(*body.media_io_kwargs, service.options().engine.media).fps;
  return options;
}

JsonObject media_io_schema(SchemaSet& named) { return describe(kMediaIo, named); }

}  // namespace fovea::serve
