#include "serve/routes/processing_options.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "core/json_writer.h"
#include "fovea/media_io.h"
#include "serve/api_error.h"
#include "serve/media/media_source.h"

namespace fovea::serve {
namespace {

constexpr const char* kKwargs = "mm_processor_kwargs";
constexpr const char* kNotOfItems =
    "this route takes options for the whole request, as mm_processor_kwargs";

/// Options of processors, and of what samples videos, by which clients and qwen-vl-utils call them.
constexpr std::array<std::string_view, 15> kProcessingMembers{
    "min_pixels", "max_pixels", "total_pixels", "size",      "resized_height",
    "do_resize",  "fps",        "num_frames",   "nframes",   "resized_width",
    "min_frames", "max_frames", "video_start",  "video_end", "frame_indices"};
/// Where options of all media of a request stand, somewhere or other.
constexpr std::array<std::string_view, 4> kOptionObjects{"mm_processor_kwargs", "media_io_kwargs",
                                                         "processor_kwargs", "extra_body"};

void refuse_members(Fields& fields, std::span<const std::string_view> names,
                    const std::string& why) {
  for (const std::string_view name : names) {
    if (fields.find(name)) refuse(fields.path(name), why);
  }
}

/// Calls check(name, path, value) for every member of an object that is not null.
template <typename Check>
void for_each_member(const JsonView& object, const std::string& where, const Check& check) {
  const Fields fields(object, where);
  for (std::size_t i = 0; i < object.num_members(); ++i) {
    const std::string_view name = object.key(i);
    if (object.member(i).is_null()) continue;
    check(name, fields.path(shortened(name, 60)), object.member(i));
  }
}

/// As read_media_io_kwargs(), with the place in the request.
MediaIo read_media_io(const JsonView& kwargs, const std::string& where, const MediaOptions& media) {
  try {
    return read_media_io_kwargs(to_json_text(kwargs), where, media);
  } catch (const Error& error) {
    // "media_io_kwargs: video.fps: expected ...".
    const std::string text = error.what();
    const std::size_t begin = where.size() + 2;
    const std::size_t end = text.find(": ", begin);
    refuse(where + "." + text.substr(begin, end - begin), text.substr(end + 2));
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

void take_item_options(Fields& part, bool are_taken, MediaReference& reference) {
  if (!are_taken) {
    refuse_members(part, kProcessingMembers, kNotOfItems);
    return refuse_members(part, kOptionObjects, kNotOfItems);
  }
  constexpr std::array<std::string_view, 3> kElsewhere{"media_io_kwargs", "processor_kwargs",
                                                       "extra_body"};
  refuse_members(part, kElsewhere, "expected options of this item as its mm_processor_kwargs");
  for (const std::string_view name : kProcessingMembers) {
    const std::optional<JsonView> value = part.find(name);
    if (!value) continue;
    std::string json;
    value->append_to(json);
    reference.options.try_emplace(std::string(name), ItemOption{std::move(json), part.path(name)});
  }
  if (const std::optional<JsonView> kwargs = part.find(kKwargs)) {
    add_item_options(*kwargs, part.path(kKwargs), reference);
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

ProcessingOptions read_processing_options(Fields& body, const Service& service) {
  refuse_members(body, kProcessingMembers, "expected this option in mm_processor_kwargs");
  constexpr std::array<std::string_view, 2> kElsewhere{"processor_kwargs", "extra_body"};
  refuse_members(body, kElsewhere,
                 "this route does not take it; expected mm_processor_kwargs or media_io_kwargs in "
                 "the body itself");
  ProcessingOptions options;
  if (const std::optional<JsonView> kwargs = body.find(kKwargs)) {
    const Fields fields(*kwargs, body.path(kKwargs));  // an object
    options.mm_processor_kwargs = if_any(*kwargs);
  }
  const std::optional<JsonView> kwargs = body.find("media_io_kwargs");
  if (!kwargs) return options;
  Fields fields(*kwargs, body.path("media_io_kwargs"));  // an object
  options.fps =
      read_media_io(*kwargs, body.path("media_io_kwargs"), service.options().engine.media).fps;
  if (const std::optional<JsonView> image = fields.find("image")) {
    options.image_io_kwargs = if_any(*image);
  }
  if (const std::optional<JsonView> video = fields.find("video")) {
    options.video_io_kwargs = if_any(*video);
  }
  return options;
}

}  // namespace fovea::serve
