// From files and bytes to what the tower reads: read, decode, plan, resize. Runs on the decode
// threads; touches no device.
#include "engine/prepare.h"

#include <algorithm>
#include <array>
#include <new>
#include <numeric>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/file.h"
#include "core/stopwatch.h"
#include "core/row_dtype.h"
#include "media/decode_image.h"
#include "media/limits.h"
#include "media/video.h"

namespace fovea {

namespace {

/// Decoded images of one item, or a view of pixels the caller decoded.
struct Frames {
  std::vector<media::Image> owned;
  std::vector<RgbView> views;
  std::vector<double> seconds;  ///< of each frame of a video; empty if nobody knows
};

void decode_into(Frames& frames, std::span<const std::uint8_t> bytes, const std::string& name,
                 const MediaOptions& options, StageTimes& times) {
  const Stopwatch watch;
  frames.owned.push_back(media::decode_image(bytes, name, options));
  times.decode_ms += watch.elapsed_ms();
}

void read_and_decode(Frames& frames, const std::string& path, const MediaOptions& options,
                     StageTimes& times) {
  const Stopwatch watch;
  const std::vector<std::uint8_t> bytes = read_file(path, options.limits.max_image_bytes);
  times.read_ms += watch.elapsed_ms();
  decode_into(frames, bytes, path, options, times);
}

Frames view_rgb(const MediaItem& item, const MediaLimits& limits) {
  FOVEA_CHECK(item.width_px >= 1 && item.height_px >= 1 && item.num_frames >= 1, kInvalidArgument,
              item.name, ": expected at least 1 frame of at least 1x1 pixels, got ",
              item.num_frames, " of ", item.width_px, "x", item.height_px);
  media::check_image_size(item.width_px, item.height_px, item.name, limits);
  media::check_num_frames(item.num_frames, item.name, limits);
  const auto bytes = checked_mul(3 * item.width_px * item.height_px, item.num_frames);
  FOVEA_CHECK(bytes && static_cast<std::uint64_t>(*bytes) == item.bytes.size(), kInvalidArgument,
              item.name, ": ", item.num_frames, " frames of ", item.width_px, "x", item.height_px,
              " RGB pixels do not take ", item.bytes.size(), " bytes");
  Frames frames;
  const std::size_t frame_bytes = item.bytes.size() / static_cast<std::size_t>(item.num_frames);
  for (std::int64_t f = 0; f < item.num_frames; ++f) {
    frames.views.push_back({item.bytes.data() + static_cast<std::size_t>(f) * frame_bytes,
                            item.width_px, item.height_px});
  }
  return frames;
}

/// Sampled frames of a video container.
void decode_container(Frames& frames, const ItemProcessor& processor, const MediaItem& item,
                      const MediaOptions& options, StageTimes& times) {
  const Stopwatch reading;
  const std::vector<std::uint8_t> bytes =
      read_file(item.paths.front(), options.limits.max_video_bytes);
  times.read_ms += reading.elapsed_ms();
  const Stopwatch decoding;
  const auto sampler = [&](const media::VideoInfo& info) {
    std::vector<std::int64_t> indices =
        processor.sample_frames(info.num_frames, info.fps, item.fps);
    if (info.fps > 0) {
      for (const std::int64_t index : indices) {
        frames.seconds.push_back(static_cast<double>(index) / info.fps);
      }
    }
    return indices;
  };
  frames.owned = media::decode_video(bytes, item.name, sampler, options.limits).frames;
  times.decode_ms += decoding.elapsed_ms();
}

Frames load_frames(const ItemProcessor& processor, const MediaItem& item,
                   const MediaOptions& options, StageTimes& times) {
  if (item.source == MediaItem::Source::kRgb) return view_rgb(item, options.limits);
  Frames frames;
  if (item.source == MediaItem::Source::kBytes) {
    FOVEA_CHECK(item.bytes.size() <= options.limits.max_image_bytes, kInvalidArgument, item.name,
                ": ", item.bytes.size(), " bytes, the limit is ", options.limits.max_image_bytes);
    decode_into(frames, item.bytes, item.name, options, times);
  } else if (item.modality == Modality::kVideo && item.source == MediaItem::Source::kFile) {
    decode_container(frames, processor, item, options, times);
  } else {
    media::check_num_frames(std::ssize(item.paths), item.name, options.limits);
    for (const std::string& path : item.paths) read_and_decode(frames, path, options, times);
  }
  for (const media::Image& image : frames.owned) {
    frames.views.push_back({image.rgb.data(), image.width_px, image.height_px});
  }
  return frames;
}

/// Do the bytes fit the description? @param rows what a row is called.
void check_matrix(const MediaItem& media, const char* rows) {
  const auto elements = checked_mul(media.num_rows, media.row_width);
  const auto element_bytes = static_cast<std::int64_t>(size_of(to_dtype(media.row_dtype)));
  const auto bytes = elements ? checked_mul(*elements, element_bytes) : std::nullopt;
  FOVEA_CHECK(bytes && media.num_rows >= 0 && media.row_width >= 0 &&
                  static_cast<std::uint64_t>(*bytes) == media.bytes.size(),
              kInvalidArgument, media.name, ": ", media.num_rows, " ", rows, " of ",
              media.row_width, " x ", to_string(to_dtype(media.row_dtype)), " do not take ",
              media.bytes.size(), " bytes");
}

/// Rows that need no tower: do they fit their description, and the model?
void check_rows(const EncoderGraphModel& model, const MediaItem& media) {
  check_matrix(media, "rows");
  const std::int64_t width = model.graph_spec().out_width;
  FOVEA_CHECK(media.row_width == width, kInvalidArgument, media.name, ": rows of this model are ",
              width, " wide, got ", media.row_width);
}

void prepare_pixel_values(const ItemProcessor& processor, const MediaItem& media,
                          PreparedMedia& result) {
  check_matrix(media, "patches");
  FOVEA_CHECK(media.grid_thw, kInvalidArgument, media.name, ": pixel values need their grid_thw");
  const Stopwatch watch;
  const auto& [t, h, w] = *media.grid_thw;
  result.item.plan = processor.plan_grid(media.modality, *media.grid_thw);
  const ItemPlan& plan = result.item.plan;
  FOVEA_CHECK(plan.spec.input_rows == media.num_rows, kInvalidArgument, media.name, ": grid_thw ",
              t, "x", h, "x", w, " has ", plan.spec.input_rows, " patches, got pixel values of ",
              media.num_rows);
  result.item.pixels.resize(plan.pixel_bytes);
  processor.fill_pixel_values(plan,
                              {reinterpret_cast<const std::byte*>(media.bytes.data()),
                               to_dtype(media.row_dtype),
                               {media.num_rows, media.row_width}},
                              result.item.pixels);
  result.times.resize_ms = watch.elapsed_ms();
}

/// Of the frames of a video: frames that were not sampled here are `fps` apart.
std::vector<double> seconds_of(const Frames& frames, const MediaItem& media) {
  const bool is_container = media.source == MediaItem::Source::kFile;
  if (is_container || media.fps <= 0) return frames.seconds;
  std::vector<double> seconds;
  for (std::size_t i = 0; i < frames.views.size(); ++i) {
    seconds.push_back(static_cast<double>(i) / media.fps);
  }
  return seconds;
}

void prepare(const EncoderGraphModel& model, const MediaItem& media, const MediaOptions& options,
             PreparedMedia& result) {
  const ItemProcessor& processor = model.processor();
  if (media.source == MediaItem::Source::kPixelValues) {
    prepare_pixel_values(processor, media, result);
    return;
  }
  if (media.source == MediaItem::Source::kRows) {
    check_rows(model, media);
    return;
  }
  const Frames frames = load_frames(processor, media, options, result.times);
  if (media.modality == Modality::kVideo) {
    result.timestamps = processor.timestamps(seconds_of(frames, media));
  }
  const RgbView& first = frames.views.front();
  const Stopwatch watch;
  result.item.plan = media.modality == Modality::kImage
                         ? processor.plan_image(first.width_px, first.height_px)
                         : processor.plan_video(static_cast<std::int64_t>(frames.views.size()),
                                                first.width_px, first.height_px);
  result.item.pixels.resize(result.item.plan.pixel_bytes);
  processor.fill_pixels(result.item.plan, frames.views, result.item.pixels);
  result.times.resize_ms = watch.elapsed_ms();
}

media::ImageInfo probe(const MediaItem& media, const MediaOptions& options) {
  constexpr std::size_t kHeaderBytes = 128 << 10;  // EXIF of 64 KiB and a colour profile included
  if (media.source == MediaItem::Source::kBytes) {
    return media::probe_image(media.bytes, media.name, options);
  }
  return media::probe_image(read_file_start(media.paths.front(), kHeaderBytes), media.name,
                            options);
}

/// As plan_ahead. @throws whatever stands in the way of it.
std::optional<ItemPlan> plan_undecoded(const ItemProcessor& processor, const MediaItem& media,
                                       const MediaOptions& options) {
  using Source = MediaItem::Source;
  const bool is_video = media.modality == Modality::kVideo;
  if (media.source == Source::kRows || (is_video && media.source == Source::kFile)) return {};
  if (media.source == Source::kPixelValues) {
    if (!media.grid_thw) return {};
    return processor.plan_grid(media.modality, *media.grid_thw);
  }
  std::int64_t num_frames = std::ssize(media.paths);
  media::ImageInfo size;
  if (media.source == Source::kRgb) {
    const Frames frames = view_rgb(media, options.limits);
    num_frames = std::ssize(frames.views);
    size.width_px = frames.views.front().width_px;
    size.height_px = frames.views.front().height_px;
  } else {
    size = probe(media, options);
  }
  return is_video ? processor.plan_video(num_frames, size.width_px, size.height_px)
                  : processor.plan_image(size.width_px, size.height_px);
}

/// The error with the item's name in front, unless that, or the path of one of its files, is there
/// already.
Error named(const MediaItem& media, const Error& error) {
  const std::string text = error.what();
  const auto begins = [&](const std::string& name) { return text.starts_with(name + ": "); };
  if (media.name.empty() || begins(media.name) || std::ranges::any_of(media.paths, begins)) {
    return error;
  }
  return {error.code(), cat(media.name, ": ", text)};
}

}  // namespace

std::optional<ItemPlan> plan_ahead(const EncoderGraphModel& model, const MediaItem& media,
                                   const MediaOptions& options) {
  try {
    return plan_undecoded(model.processor(), media, options);
  } catch (const Error&) {
    return std::nullopt;  // prepare_media says why
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

PreparedMedia prepare_media(const EncoderGraphModel& model, const MediaItem& media,
                            const MediaOptions& options) {
  PreparedMedia result;
  try {
    prepare(model, media, options, result);
  } catch (const Error& error) {
    result.error = named(media, error);
  } catch (const std::bad_alloc&) {
    result.error = Error(ErrorCode::kOutOfMemory, cat(media.name, ": out of memory"));
  }
  if (result.error) result.item = {};
  return result;
}

std::vector<PreparedMedia> prepare_some(const EncoderGraphModel& model,
                                        std::span<const MediaItem> media,
                                        std::span<const std::size_t> which,
                                        const MediaOptions& options, ThreadPool& pool) {
  std::vector<PreparedMedia> results(which.size());
  pool.parallel_for(std::ssize(which), [&](std::int64_t i, int) {
    const auto place = static_cast<std::size_t>(i);
    results[place] = prepare_media(model, media[which[place]], options);
  });
  return results;
}

std::vector<PreparedMedia> prepare_all(const EncoderGraphModel& model,
                                       std::span<const MediaItem> media,
                                       const MediaOptions& options, ThreadPool& pool) {
  std::vector<std::size_t> which(media.size());
  std::iota(which.begin(), which.end(), std::size_t{0});
  return prepare_some(model, media, which, options, pool);
}

}  // namespace fovea
