#pragma once

#include <array>
#include <optional>
#include <string>

#include "fovea/media.h"
#include "serve/media/media_source.h"
#include "serve/service/service.h"
#include "serve/text/object_table.h"

namespace fovea::serve {

/// The options of a request for the processing of its media: `mm_processor_kwargs` and
/// `media_io_kwargs` of vLLM. Refers to the body.
struct ProcessingOptions {
  std::optional<JsonView> mm_processor_kwargs;  ///< absent or not empty
  std::optional<JsonView> image_io_kwargs;      ///< likewise
  std::optional<JsonView> video_io_kwargs;      ///< likewise
  std::optional<double> fps;  ///< at which videos are sampled; absent: as MediaReference has it

  [[nodiscard]] const std::optional<JsonView>& io_kwargs(Modality modality) const {
    return modality == Modality::kImage ? image_io_kwargs : video_io_kwargs;
  }
  /// Whether there are any for media of this kind.
  [[nodiscard]] bool concern(Modality modality) const {
    return mm_processor_kwargs || io_kwargs(modality);
  }
};

/// Options of processors, and of what samples videos, by which clients and qwen-vl-utils call them.
inline constexpr std::array<std::string_view, 15> kProcessingNames{
    "min_pixels", "max_pixels", "total_pixels", "size",      "resized_height",
    "do_resize",  "fps",        "num_frames",   "nframes",   "resized_width",
    "min_frames", "max_frames", "video_start",  "video_end", "frame_indices"};

/// kProcessingNames and others with a place each, for tables. @param names joined with them.
template <class T, std::size_t kCount>
[[nodiscard]] constexpr auto processing_members(const Place<T>& place,
                                                const std::array<std::string_view, kCount>& names) {
  std::array<Member<T>, kProcessingNames.size() + kCount> members{};
  std::size_t next = 0;
  const auto add = [&](std::string_view name) {
    members[next++] = {place,
                       {.name = name, .about = "An option of the processor, for this item alone"}};
  };
  for (const std::string_view name : kProcessingNames) add(name);
  for (const std::string_view name : names) add(name);
  return members;
}

/// The members of a body with options for all its media.
struct ProcessingMembers {
  std::optional<JsonView> mm_processor_kwargs;
  std::optional<JsonView> media_io_kwargs;
};
[[nodiscard]] JsonObject media_io_schema(SchemaSet& named);
inline constexpr std::array<Member<ProcessingMembers>, 2> kOptionMembers{
    {{&ProcessingMembers::mm_processor_kwargs,
      {.name = "mm_processor_kwargs",
       .about = "Options of the processor for all images and videos, as vLLM has them",
       .schema = schema::object}},
     {&ProcessingMembers::media_io_kwargs,
      {.name = "media_io_kwargs",
       .about = "How media are read, as vLLM has it",
       .schema = media_io_schema}}}};
inline constexpr auto kProcessingMembers = joined<ProcessingMembers>(
    kOptionMembers,
    processing_members<ProcessingMembers>(Refused{"expected this option in mm_processor_kwargs"},
                                          std::array<std::string_view, 0>{}),
    std::array<Member<ProcessingMembers>, 2>{
        {{Refused{"this route does not take it; expected mm_processor_kwargs or media_io_kwargs in "
                  "the body itself"},
          {.name = "processor_kwargs", .about = ""}},
         {Refused{"this route does not take it; expected mm_processor_kwargs or media_io_kwargs in "
                  "the body itself"},
          {.name = "extra_body", .about = ""}}}});

/// Reads the two members of a body. `rgba_background_color` and `image_mode` of images are options
/// of the engine, which a request may only repeat.
/// @throws ApiError(400): "invalid_value", "unknown_field" that names the member.
[[nodiscard]] ProcessingOptions read_processing_options(const ProcessingMembers& body,
                                                        const Service& service);

/// Adds options to an item, as MediaItem::mm_processor_kwargs has them; those that it has already
/// come before them. @param where path of `kwargs` in the request.
/// @throws ApiError(400, "invalid_value") for what is no object.
void add_item_options(const JsonView& kwargs, const std::string& where, MediaReference& reference);

/// Adds the options that stand in a part of a conversation, or in the object of its URL, as members
/// of their own; likewise. @param where path of that object.
void add_named_options(const NamedValues& options, const BodyObject& where,
                       MediaReference& reference);

/// Whether this server's model takes the options of an item.
/// @throws ApiError(400, "invalid_value") that names the option, with what the model takes.
void check_item_options(const MediaReference& reference, const Service& service);

/// Gives an item the options of its request, unless it has others, and checks all that it has then.
/// @throws as check_item_options.
void apply_options(const ProcessingOptions& options, const Service& service,
                   MediaReference& reference);

}  // namespace fovea::serve
