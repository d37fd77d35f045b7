// Flags about images, and their translation into MediaOptions.
#include "flags/media_flags.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <vector>

#include "errors.h"
#include "flags/cli11.h"
#include "flags/parse.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr const char* kImageGroup = "Images";
constexpr const char* kBackgroundFlag = "--rgba-background-color";
constexpr const char* kDecodeBytesFlag = "--max-decode-bytes";
constexpr const char* kDeadlineFlag = "--decode-deadline";
constexpr std::int64_t kLongestDeadlineMs = std::int64_t{1000} * 60 * 60 * 24;

struct ProfileName {
  const char* name;
  MediaProfile profile;
  bool has_background;  ///< composites some transparency
};

constexpr std::array kProfileNames{ProfileName{"vllm", MediaProfile::kVllm, true},
                                   ProfileName{"vllm-0.23", MediaProfile::kVllm023, true},
                                   ProfileName{"transformers", MediaProfile::kTransformers, false},
                                   ProfileName{"sglang", MediaProfile::kSglang, false}};

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  std::ranges::transform(kProfileNames, std::back_inserter(names), &ProfileName::name);
  return names;
}

/// @param name one of the choices of --image-backend.
ImageBackend image_backend(const std::string& name) {
  if (name == "torchvision") return ImageBackend::kTorchvision;
  return name == "pil" ? ImageBackend::kPillow : ImageBackend::kModelDefault;
}

void set_background(const std::string& text, std::uint8_t background[3]) {
  const std::vector<std::string> levels = split_commas(text);
  if (levels.size() != 3) {
    throw UsageError(std::string(kBackgroundFlag) + ": expected R,G,B, got \"" + one_line(text) +
                     "\"");
  }
  std::ranges::transform(levels, background, [](const std::string& level) {
    return static_cast<std::uint8_t>(parse_whole(level, 0, kBackgroundFlag, 255));
  });
}

/// Flags that refuse items for what they would cost.
void add_limit_flags(CLI::App& verb, MediaFlags& flags) {
  add_positive(verb, "--max-image-pixels", flags.max_image_pixels,
               "Refuse larger images before decoding them")
      ->group(kImageGroup);
  add_positive(verb, "--max-item-bytes", flags.max_item_bytes,
               "Refuse images, and videos by one of their frames, whose decoding would take more "
               "host memory. The file header tells: 3 bytes per pixel, 5 to 11 for a progressive "
               "JPEG, up to 10 for a WebP")
      ->group(kImageGroup);
  add_positive(verb, "--max-patches-per-item", flags.max_patches_per_item,
               "Refuse items that would have more patches after resizing, all frames of a video "
               "together. The time of the tower grows with them, whatever the size of the file")
      ->group(kImageGroup);
  add_positive(verb, kDecodeBytesFlag, flags.max_decode_bytes,
               "Host memory that all decoding threads may take together; what does not fit waits "
               "for its turn (default: 448 MiB, or 32 MiB per thread if that is more)")
      ->group(kImageGroup);
  const auto read_deadline = [&flags](const std::string& text) {
    flags.decode_deadline_ms = parse_whole(text, 1, kDeadlineFlag, kLongestDeadlineMs);
  };
  verb.add_option_function<std::string>(kDeadlineFlag, read_deadline,
                                        "Milliseconds that an item may take from the first byte "
                                        "read to resized pixels; it fails after them (default: "
                                        "any time)")
      ->type_name("MS")
      ->group(kImageGroup);
}

MediaLimits limits_of(const MediaFlags& flags) {
  if (flags.max_decode_bytes > 0 && flags.max_decode_bytes < flags.max_item_bytes) {
    throw UsageError(std::string(kDecodeBytesFlag) + ": expected at least --max-item-bytes, " +
                     std::to_string(flags.max_item_bytes) + ", got " +
                     std::to_string(flags.max_decode_bytes));
  }
  MediaLimits limits;
  limits.max_image_pixels = flags.max_image_pixels;
  limits.max_item_bytes = static_cast<std::size_t>(flags.max_item_bytes);
  limits.max_patches_per_item = flags.max_patches_per_item;
  limits.max_decode_bytes = static_cast<std::size_t>(flags.max_decode_bytes);
  limits.decode_deadline = std::chrono::milliseconds(flags.decode_deadline_ms);
  return limits;
}

}  // namespace

void add_media_flags(CLI::App& verb, MediaFlags& flags) {
  add_choice(verb, "--image-backend", flags.image_backend, {"auto", "torchvision", "pil"},
             "Resize arithmetic; auto is what vLLM uses for the model family")
      ->group(kImageGroup);
  add_choice(verb, "--media-profile", flags.profile, profile_names(),
             "Whose loader turns files into pixels. vllm (0.24 and later) turns images upright by "
             "their EXIF data and composites every transparency; vllm-0.23 does not turn them and "
             "composites RGBA only; transformers turns them and ignores transparency; sglang does "
             "neither")
      ->group(kImageGroup);
  verb.add_option(kBackgroundFlag, flags.background,
                  "Colour under transparent pixels, each level from 0 to 255; for the profiles of "
                  "vLLM (default: 255,255,255)")
      ->type_name("R,G,B")
      ->group(kImageGroup);
  add_positive(verb, "--min-pixels", flags.min_pixels,
               "Enlarge smaller images to this area (default: the checkpoint's)")
      ->group(kImageGroup);
  add_positive(verb, "--max-pixels", flags.max_pixels,
               "Shrink larger images to this area (default: the checkpoint's)")
      ->group(kImageGroup);
  verb.add_flag("--jpeg-scaling", flags.jpeg_scaling,
                "Decode JPEG files at 1/2, 1/4 or 1/8 of their size where the sides of that are at "
                "least 1.75 times those they are resized to: faster, for rows that differ a little")
      ->group(kImageGroup);
  add_choice(verb, "--damaged-frames", flags.damaged_frames, {"skip", "refuse"},
             "Encode a video of which some frames cannot be read, because it is damaged or cut, "
             "from the others with a warning, as vLLM does, or refuse it")
      ->group(kImageGroup);
  add_limit_flags(verb, flags);
}

MediaOptions media_options(const MediaFlags& flags) {
  MediaOptions media;
  if (flags.min_pixels > 0) media.min_pixels = flags.min_pixels;
  if (flags.max_pixels > 0) media.max_pixels = flags.max_pixels;
  media.limits = limits_of(flags);
  media.image_backend = image_backend(flags.image_backend);
  media.jpeg_scaling = flags.jpeg_scaling;
  if (flags.damaged_frames == "refuse") media.damaged_frames = DamagedFrames::kRefuse;
  const ProfileName& profile =
      *std::ranges::find(kProfileNames, flags.profile,
                         [](const ProfileName& entry) { return std::string(entry.name); });
  media.profile = profile.profile;
  if (flags.background.empty()) return media;
  if (!profile.has_background) {
    throw UsageError(std::string(kBackgroundFlag) + ": --media-profile " + flags.profile +
                     " ignores transparency");
  }
  set_background(flags.background, media.background);
  return media;
}

}  // namespace fovea::cli
