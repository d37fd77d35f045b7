// preprocessor_config.json and its relatives, for families over grids.
#include "models/common/grid/processor_file.h"

#include <optional>
#include <string>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::common {

namespace {

constexpr std::int64_t kMaxPixels = std::int64_t{1} << 40;

bool is_valid(PixelRange range) {
  return range.min_pixels > 0 && range.min_pixels <= range.max_pixels &&
         range.max_pixels <= kMaxPixels;
}

/// One end of a range of areas, as files name it.
struct Limit {
  std::string_view edge;    ///< in `size`
  std::string_view pixels;  ///< beside `size`, and in `size` of older files
  std::string_view tokens;  ///< where limits count tokens
};

constexpr Limit kLeast{"shortest_edge", "min_pixels", "min_image_tokens"};
constexpr Limit kMost{"longest_edge", "max_pixels", "max_image_tokens"};

/// The value of a limit; absent where the file leaves it to its class.
std::optional<JsonView> find_limit(const JsonView& processor, const Limit& limit,
                                   const ProcessorClass& reader) {
  if (reader.token_pixels > 0) return processor.find(limit.tokens);
  if (reader.overrides_size) {
    if (auto beside = processor.find(limit.pixels)) return beside;
  }
  const auto size = processor.find("size");
  if (!size) return std::nullopt;
  const auto edge = size->find(limit.edge);
  return edge ? edge : size->find(limit.pixels);
}

/// The complaint about a `size` that lacks a limit, which no class makes up; empty if nothing is.
std::string missing_edge(const JsonView& processor, const ProcessorClass& reader) {
  const auto size = processor.find("size");
  if (!size || reader.token_pixels > 0) return "";
  for (const Limit& limit : {kLeast, kMost}) {
    if (find_limit(processor, limit, reader)) continue;
    return cat(size->path(), ": expected ", kLeast.edge, " and ", kMost.edge, ", ", limit.edge,
               " is missing");
  }
  return "";
}

PixelRange pixel_range(const JsonView& processor, const ProcessorClass& reader) {
  PixelRange range = reader.range;
  const auto read = [&](const Limit& limit, std::int64_t& pixels) {
    const auto value = find_limit(processor, limit, reader);
    if (!value) return;
    pixels = reader.token_pixels > 0 ? as_size(*value) * reader.token_pixels : value->as_int();
  };
  read(kLeast, range.min_pixels);
  read(kMost, range.max_pixels);
  FOVEA_CHECK(is_valid(range), kCorruptData, processor.path(),
              ": expected 0 < min_pixels <= max_pixels <= ", kMaxPixels, ", got ", range.min_pixels,
              " and ", range.max_pixels);
  return range;
}

void check_same(const JsonView& processor, std::string_view key, std::int64_t expected) {
  const std::int64_t value = read_size(processor, key, expected);
  FOVEA_CHECK(value == expected, kCorruptData, processor.path(), ".", key, ": ", value,
              " contradicts config.json, which says ", expected);
}

/// @param frames of a temporal patch.
void check_geometry(const JsonView& processor, const GridGeometry& geometry, std::int64_t frames) {
  check_same(processor, "patch_size", geometry.patch_size);
  check_same(processor, "temporal_patch_size", frames);
  check_same(processor, "merge_size", geometry.spatial_merge_size);
}

/// Pillow's numbers of the filters, as `resample` stores them.
media::ResizeFilter resample_filter(const JsonView& processor, const ProcessorClass& reader) {
  if (reader.always_bicubic) return media::ResizeFilter::kBicubic;
  switch (const std::int64_t number = processor.int_or("resample", 3); number) {
    case 2: return media::ResizeFilter::kBilinear;
    case 3: return media::ResizeFilter::kBicubic;
    default:
      FOVEA_CHECK(false, kUnsupported, processor.path(),
                  ".resample: 2 (bilinear) and 3 (bicubic) are supported, got ", number);
  }
}

void apply_options(const MediaOptions& media, PixelRange& image, GridProcessing& processing) {
  if (media.min_pixels) image.min_pixels = *media.min_pixels;
  if (media.max_pixels) image.max_pixels = *media.max_pixels;
  FOVEA_CHECK(is_valid(image), kInvalidArgument,
              "expected 0 < min_pixels <= max_pixels <= ", kMaxPixels, ", got ", image.min_pixels,
              media.min_pixels ? "" : " (the checkpoint's)", " and ", image.max_pixels,
              media.max_pixels ? "" : " (the checkpoint's)");
  processing.engine = resize_engine(media, processing.engine);
}

bool has_limits(const std::optional<JsonView>& processor, const ProcessorClass& reader) {
  return processor && find_limit(*processor, kLeast, reader) &&
         find_limit(*processor, kMost, reader);
}

/// The key that stands for both limits in messages.
std::string_view limits_key(const ProcessorClass& reader) {
  return reader.token_pixels > 0 ? kMost.tokens : "size";
}

std::string pixels_text(const char* name, PixelRange range) {
  return cat(name, "=", range.min_pixels, "..", range.max_pixels);
}

std::string assumptions(const checkpoint::HfConfig& files, const ProcessorClasses& classes,
                        const GridLimits& limits, const PixelScaling& scaling) {
  const auto image = files.image_processor();
  const auto video = files.video_processor();
  const auto path_of = [&](const std::optional<JsonView>& processor, const char* name) {
    return processor ? processor->path() : files.directory + name;
  };
  const std::string image_file = path_of(image, "/preprocessor_config.json");
  const std::string video_file =
      path_of(video, image ? "/video_preprocessor_config.json" : "/preprocessor_config.json");
  std::string text = missing_text(image_file, image.has_value(),
                                  {{has_limits(image, classes.image), limits_key(classes.image),
                                    pixels_text("image_pixels", limits.image)},
                                   assumed(image, "image_mean", channel_text(scaling.image_mean)),
                                   assumed(image, "image_std", channel_text(scaling.image_std))});
  if (!classes.has_videos() || has_limits(video, classes.video)) return text;
  const std::string video_pixels = pixels_text("video_pixels", limits.video);
  if (!text.empty() && video_file == image_file) return cat(text, " ", video_pixels);
  return cat(text, text.empty() ? "" : " ",
             missing_text(video_file, video.has_value(),
                          {{false, limits_key(classes.video), video_pixels}}));
}

/// The key that a limit is taken from.
SourcedKey limit_source(const std::optional<JsonView>& file, const Limit& limit,
                        const ProcessorClass& reader, bool is_option) {
  if (is_option) return {limit.pixels, Source::kOption};
  const bool given = file && find_limit(*file, limit, reader);
  const Source source = given ? Source::kFile : Source::kSilent;
  if (reader.token_pixels > 0) return {limit.tokens, source};
  const bool beside = file && reader.overrides_size && file->find(limit.pixels);
  return {beside ? limit.pixels : limit.edge, source};
}

/// @param options the user's limits, which come before those of the file.
std::string sources(std::string_view modality, const std::optional<JsonView>& file,
                    const ProcessorClass& reader, const MediaOptions& options) {
  std::vector<SourcedKey> keys{limit_source(file, kLeast, reader, options.min_pixels.has_value()),
                               limit_source(file, kMost, reader, options.max_pixels.has_value())};
  const auto add = [&](const std::vector<SourcedKey>& more) {
    keys.insert(keys.end(), more.begin(), more.end());
  };
  add(sourced(file, {"image_mean", "image_std", "rescale_factor"}));
  if (!reader.always_bicubic) add(sourced(file, {"resample"}));
  for (const std::string_view key : reader.more) add(sourced(file, {key}));
  return sources_text(modality, file, keys);
}

void read_images(const JsonView& file, const ProcessorClass& reader, GridProcessing& processing) {
  check_geometry(file, processing.geometry, processing.geometry.patch_frames());
  const std::string missing = missing_edge(file, reader);
  FOVEA_CHECK(missing.empty(), kCorruptData, missing);
  processing.limits.image = pixel_range(file, reader);
  processing.scaling = read_scaling(file, reader.scaling);
  processing.filter = resample_filter(file, reader);
}

/// A mistake of the file about videos alone must not keep images from being encoded.
void read_videos(const JsonView& file, const ProcessorClass& reader, GridProcessing& processing) {
  check_geometry(file, processing.geometry, processing.geometry.temporal_patch_size);
  const PixelScaling scaling = read_scaling(file, reader.scaling);
  processing.video_refusal = missing_edge(file, reader);
  if (!processing.video_refusal.empty()) return;
  processing.limits.video = pixel_range(file, reader);
  std::string keys = differing_keys(scaling, processing.scaling);
  if (resample_filter(file, reader) != processing.filter)
    keys += keys.empty() ? "resample" : ", resample";
  processing.video_refusal = video_refusal(file, keys);
}

}  // namespace

void read_grid_processor(const checkpoint::HfConfig& files, const ProcessorClasses& classes,
                         const MediaOptions& media, GridProcessing& processing) {
  processing.limits = {.image = classes.image.range, .video = classes.video.range};
  processing.scaling = classes.image.scaling;
  if (const auto image = files.image_processor()) read_images(*image, classes.image, processing);
  const auto video = classes.has_videos() ? files.video_processor() : std::nullopt;
  if (video) read_videos(*video, classes.video, processing);
  apply_options(media, processing.limits.image, processing);
  processing.assumptions = assumptions(files, classes, processing.limits, processing.scaling);
  processing.sources = sources("image", files.image_processor(), classes.image, media);
  if (!classes.has_videos()) return;
  processing.sources += cat(" ", sources("video", video, classes.video, {}));
}

VideoBounds read_video_bounds(const checkpoint::HfConfig& files, const MediaOptions& media,
                              VideoBounds bounds) {
  constexpr double kMostFps = 30;
  if (media.profile == MediaProfile::kVllm) bounds.max_fps = kMostFps;
  const auto video = files.video_processor();
  if (!video) return bounds;
  if (const auto frames = files.item ? files.item->given.root().find("num_frames") : std::nullopt) {
    bounds.num_frames = as_size(*frames);
  }
  bounds.cap_pixels_per_frame = video->bool_or("cap_pixels_per_frame", bounds.cap_pixels_per_frame);
  bounds.min_frames = read_size(*video, "min_frames", bounds.min_frames);
  bounds.max_frames = read_size(*video, "max_frames", bounds.max_frames);
  bounds.max_video_tokens = read_size(*video, "max_video_tokens", bounds.max_video_tokens);
  return bounds;
}

}  // namespace fovea::common
