#include "serve/routes/processing_options.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

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
    if (fields.find(name) != nullptr) refuse(fields.path(name), why);
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
void check_pixels(const Fields& fields, const std::string& name, const Json& value, bool is_max,
                  const Service& service) {
  const std::string range = pixel_range(service);
  const std::size_t dots = range.find("..");
  const std::string own =
      is_max && dots != range.npos ? range.substr(dots + 2) : range.substr(0, dots);
  if (!own.empty() && to_text(value) == own) return;
  refuse(fields.path(name),
         own.empty() ? "this model has no such option"
                     : "this server encodes with " + own + " for all requests, got " +
                           shortened(to_text(value), 60) +
                           "; the bounds are set when it starts (--min-pixels, --max-pixels)");
}

void check_size(const Json& size, const std::string& where, const Service& service) {
  Fields fields(size, where);
  for (const auto& [name, value] : size.items()) {
    const bool is_max = name == "longest_edge" || name == "max_pixels";
    if (!is_max && name != "shortest_edge" && name != "min_pixels") {
      refuse(fields.path(name), kNotOfRequests);
    }
    check_pixels(fields, name, value, is_max, service);
  }
}

void check_image_io(const Json& kwargs, const std::string& where, const MediaOptions& media) {
  const Json background{media.background[0], media.background[1], media.background[2]};
  Fields fields(kwargs, where);
  for (const auto& [name, value] : kwargs.items()) {
    if (value.is_null() || (name == "image_mode" && value == "RGB")) continue;
    if (name == "rgba_background_color" && value == background) continue;
    refuse(fields.path(shortened(name, 60)),
           name == "rgba_background_color"
               ? "this server encodes with " + to_text(background) + " for all requests"
               : kNotOfRequests);
  }
}

double read_video_io(const Json& kwargs, const std::string& where) {
  Fields fields(kwargs, where);
  const double fps = fields.number("fps").value_or(MediaReference{}.fps);
  if (fps <= 0) refuse(fields.path("fps"), "expected a positive number");
  for (const auto& [name, value] : kwargs.items()) {
    const bool is_all_frames = name == "num_frames" && value == -1;
    if (name == "fps" || value.is_null() || is_all_frames) continue;
    refuse(fields.path(shortened(name, 60)), "this option cannot be set by requests; fps can");
  }
  return fps;
}

}  // namespace

void check_processor_kwargs(const Json& kwargs, const std::string& where, const Service& service) {
  Fields fields(kwargs, where);
  for (const auto& [name, value] : kwargs.items()) {
    if (value.is_null()) continue;
    if (name == "min_pixels" || name == "max_pixels") {
      check_pixels(fields, name, value, name == "max_pixels", service);
    } else if (name == "size") {
      check_size(value, fields.path(name), service);
    } else if (name == "images_kwargs") {
      check_processor_kwargs(value, fields.path(name), service);
    } else {
      refuse(fields.path(shortened(name, 60)), kNotOfRequests);
    }
  }
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
  if (const Json* kwargs = body.find("mm_processor_kwargs")) {
    check_processor_kwargs(*kwargs, body.path("mm_processor_kwargs"), service);
    options.mm_processor_kwargs = *kwargs;
  }
  const Json* kwargs = body.find("media_io_kwargs");
  if (kwargs == nullptr) return options;
  Fields fields(*kwargs, body.path("media_io_kwargs"));
  if (const Json* image = fields.find("image")) {
    check_image_io(*image, fields.path("image"), service.options().engine.media);
    options.image_io_kwargs = *image;
  }
  if (const Json* video = fields.find("video")) {
    options.fps = read_video_io(*video, fields.path("video"));
    options.video_io_kwargs = *video;
  }
  return options;
}

}  // namespace fovea::serve
