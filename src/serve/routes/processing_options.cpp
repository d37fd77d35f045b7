#include "serve/routes/processing_options.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "core/json_writer.h"
#include "serve/api_error.h"
#include "serve/media/media_source.h"

namespace fovea::serve {
namespace {

constexpr const char* kNotOfRequests = "this option cannot be set by requests";

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

/// "4096..16777216": the pixels that images of this model may have; empty for families without.
std::string pixel_range(const Service& service) {
  const auto& facts = service.model().report.facts;
  const auto found =
      std::ranges::find(facts, "image pixels", [](const auto& f) { return f.first; });
  return found == facts.end() ? "" : found->second;
}

/// Refuses a bound of pixels other than the engine's.
void check_pixels(const std::string& path, const JsonView& value, bool is_max,
                  const Service& service) {
  const std::string range = pixel_range(service);
  const std::size_t dots = range.find("..");
  const std::string own =
      is_max && dots != range.npos ? range.substr(dots + 2) : range.substr(0, dots);
  if (!own.empty() && value.integer() && value.summary() == own) return;
  refuse(path, own.empty()
                   ? "this model has no such option"
                   : "this server encodes with " + own + " for all requests, got " +
                         value.summary() +
                         "; the bounds are set when it starts (--min-pixels, --max-pixels)");
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

bool is_text(const JsonView& value, std::string_view text) {
  return value.is_string() && value.as_text() == text;
}

void check_size(const JsonView& size, const std::string& where, const Service& service) {
  for_each_member(size, where, [&](std::string_view name, const std::string& path, JsonView value) {
    const bool is_max = name == "longest_edge" || name == "max_pixels";
    if (!is_max && name != "shortest_edge" && name != "min_pixels") refuse(path, kNotOfRequests);
    check_pixels(path, value, is_max, service);
  });
}

void check_image_io(const JsonView& kwargs, const std::string& where, const MediaOptions& media) {
  const std::string background = to_json_text(media.background);
  const JsonDocument wanted = JsonDocument::parse(background, "background");
  for_each_member(
      kwargs, where, [&](std::string_view name, const std::string& path, JsonView value) {
        if (name == "image_mode" && is_text(value, "RGB")) return;
        const bool is_background = name == "rgba_background_color";
        if (is_background && value.equals(wanted.root())) return;
        refuse(path, is_background ? "this server encodes with " + background + " for all requests"
                                   : kNotOfRequests);
      });
}

std::optional<double> read_video_io(const JsonView& kwargs, const std::string& where) {
  Fields fields(kwargs, where);
  const std::optional<double> fps = fields.number("fps");
  if (fps && *fps <= 0) refuse(fields.path("fps"), "expected a positive number");
  for_each_member(kwargs, where,
                  [](std::string_view name, const std::string& path, JsonView value) {
                    if (name == "fps" || (name == "num_frames" && value.integer() == -1)) return;
                    refuse(path, "this option cannot be set by requests; fps can");
                  });
  return fps;
}

/// The object if it has members.
std::optional<JsonView> if_any(const JsonView& object) {
  return object.num_members() > 0 ? std::optional(object) : std::nullopt;
}

}  // namespace

void check_processor_kwargs(const JsonView& kwargs, const std::string& where,
                            const Service& service) {
  for_each_member(kwargs, where,
                  [&](std::string_view name, const std::string& path, JsonView value) {
                    if (name == "min_pixels" || name == "max_pixels") {
                      check_pixels(path, value, name == "max_pixels", service);
                    } else if (name == "size") {
                      check_size(value, path, service);
                    } else if (name == "images_kwargs") {
                      check_processor_kwargs(value, path, service);
                    } else {
                      refuse(path, kNotOfRequests);
                    }
                  });
}

void refuse_processing_members(Fields& fields) {
  refuse_members(fields, kProcessingMembers, kNotOfRequests);
  refuse_members(fields, kOptionObjects, kNotOfRequests);
}

ProcessingOptions read_processing_options(Fields& body, const Service& service) {
  refuse_members(body, kProcessingMembers, kNotOfRequests);
  constexpr std::array<std::string_view, 2> kElsewhere{"processor_kwargs", "extra_body"};
  refuse_members(body, kElsewhere,
                 "this route does not take it; expected mm_processor_kwargs or media_io_kwargs in "
                 "the body itself");
  ProcessingOptions options;
  if (const std::optional<JsonView> kwargs = body.find("mm_processor_kwargs")) {
    check_processor_kwargs(*kwargs, body.path("mm_processor_kwargs"), service);
    options.mm_processor_kwargs = if_any(*kwargs);
  }
  const std::optional<JsonView> kwargs = body.find("media_io_kwargs");
  if (!kwargs) return options;
  Fields fields(*kwargs, body.path("media_io_kwargs"));
  if (const std::optional<JsonView> image = fields.find("image")) {
    check_image_io(*image, fields.path("image"), service.options().engine.media);
    options.image_io_kwargs = if_any(*image);
  }
  if (const std::optional<JsonView> video = fields.find("video")) {
    options.fps = read_video_io(*video, fields.path("video"));
    options.video_io_kwargs = if_any(*video);
  }
  return options;
}

}  // namespace fovea::serve
