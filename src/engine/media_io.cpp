// media_io_kwargs of vLLM: what of them an item can have, and what it cannot. And what bytes are.
#include "fovea/media_io.h"

#include "core/check.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "media/decode_image.h"

namespace fovea {
namespace {

/// Calls use(key, value) for every member that is not null.
template <class Use>
void for_each_given(const JsonView& object, const Use& use) {
  FOVEA_CHECK(object.is_object(), kInvalidArgument, object.path(), ": expected an object, got ",
              object.summary());
  for (std::size_t i = 0; i < object.num_members(); ++i) {
    if (!object.member(i).is_null()) use(object.key(i), object.member(i));
  }
}

void check_image(const JsonView& object, const MediaOptions& media) {
  const std::string background = to_json_text(media.background);
  const JsonDocument wanted = JsonDocument::parse(background, "background");
  for_each_given(object, [&](std::string_view key, const JsonView& value) {
    if (key == "image_mode" && value.is_string() && value.as_text() == "RGB") return;
    const bool is_background = key == "rgba_background_color";
    if (is_background && value.equals(wanted.root())) return;
    FOVEA_CHECK(!is_background, kUnsupported, value.path(), ": images are composited on ",
                background, ", the colour of the engine for all items");
    FOVEA_CHECK(false, kUnsupported, value.path(), ": no option that items may have of their own");
  });
}

void read_video(const JsonView& object, MediaIo& io) {
  for_each_given(object, [&](std::string_view key, const JsonView& value) {
    if (key == "fps") {
      io.fps = value.as_number();
      FOVEA_CHECK(*io.fps > 0, kInvalidArgument, value.path(), ": expected a number above 0, got ",
                  value.summary());
      return;
    }
    const bool is_number = key == "num_frames";
    if (is_number && value.integer() == -1) return;
    FOVEA_CHECK(!is_number, kUnsupported, value.path(),
                ": frames are chosen by the processor's own rule, which takes num_frames in "
                "mm_processor_kwargs; expected -1 here, got ",
                value.summary());
    FOVEA_CHECK(false, kUnsupported, value.path(),
                ": no option that items may have of their own; fps is one, and those of "
                "mm_processor_kwargs are");
  });
}

}  // namespace

MediaIo read_media_io_kwargs(std::string_view json, const std::string& name,
                             const MediaOptions& media) {
  try {
    MediaIo io;
    const JsonDocument document = JsonDocument::parse(json, name);
    for_each_given(document.root(), [&](std::string_view key, const JsonView& value) {
      if (key == "image") return check_image(value, media);
      if (key == "video") return read_video(value, io);
      FOVEA_CHECK(false, kUnsupported, value.path(), ": expected options of image or video");
    });
    return io;
  } catch (const Error& error) {
    // What is wrong with the text is wrong with what the caller gave.
    if (error.code() != ErrorCode::kCorruptData) throw;
    throw Error(ErrorCode::kInvalidArgument, error.what());
  }
}

bool begins_as_image(std::span<const std::uint8_t> bytes) noexcept {
  return media::find_image_format(bytes).has_value();
}

}  // namespace fovea
