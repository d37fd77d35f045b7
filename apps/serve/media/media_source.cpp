#include "serve/media/media_source.h"

#include <utility>

#include "serve/api_error.h"
#include "serve/media/local_files.h"
#include "serve/text/base64.h"
#include "serve/text/data_url.h"
#include "serve/text/url.h"

namespace fovea::serve {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Longest part of a client's text that a message repeats.
constexpr std::size_t kMaxQuoted = 60;

ApiError invalid(const std::string& message, const MediaReference& reference) {
  return {400, "invalid_value", message, reference.param};
}

MediaItem item_of(const MediaReference& reference, Bytes bytes) {
  if (bytes.empty()) throw invalid("the media has no bytes", reference);
  if (reference.modality == Modality::kImage) {
    return image_bytes(std::move(bytes), reference.param);
  }
  return video_bytes(std::move(bytes), reference.param, reference.fps);
}

/// An item that refers to the bytes of the request.
MediaItem borrowed_item(const MediaReference& reference) {
  if (reference.bytes.empty()) throw invalid("the media has no bytes", reference);
  if (reference.modality == Modality::kImage) {
    return image_bytes(reference.bytes, reference.owner, reference.param);
  }
  return video_bytes(reference.bytes, reference.owner, reference.param, reference.fps);
}

}  // namespace

struct MediaSource::Impl {
  explicit Impl(MediaSourceOptions given)
      : options(std::move(given)), files(options.allowed_local_path) {}

  /// The item, if nothing has to be fetched for it. @throws ApiError.
  MediaItem local_item(const MediaReference& reference, MediaCounts& counts) const;
  Bytes base64(const MediaReference& reference, std::string_view text) const;
  [[nodiscard]] std::size_t max_bytes(const MediaReference& reference) const {
    return reference.modality == Modality::kImage ? options.max_image_bytes
                                                  : options.max_video_bytes;
  }
  void check_size(const MediaReference& reference, std::size_t bytes) const;

  MediaSourceOptions options;
  LocalFiles files;
};

void MediaSource::Impl::check_size(const MediaReference& reference, std::size_t bytes) const {
  if (bytes <= max_bytes(reference)) return;
  const bool is_image = reference.modality == Modality::kImage;
  throw ApiError(422, is_image ? "image_too_large" : "video_too_large",
                 "the encoded " + std::string(is_image ? "image" : "video") + " has more than " +
                     std::to_string(max_bytes(reference)) + " bytes (" +
                     (is_image ? "--max-image-bytes)" : "--max-video-bytes)"),
                 reference.param);
}

Bytes MediaSource::Impl::base64(const MediaReference& reference, std::string_view text) const {
  constexpr std::size_t kMostPadding = 2;
  if (base64_bytes(text) > max_bytes(reference) + kMostPadding) {
    check_size(reference, base64_bytes(text));
  }
  std::optional<Bytes> bytes = from_base64(text);
  if (!bytes) throw invalid("the media is not valid base64", reference);
  check_size(reference, bytes->size());
  return *std::move(bytes);
}

MediaItem MediaSource::Impl::local_item(const MediaReference& reference,
                                        MediaCounts& counts) const {
  const auto counted = [&](std::int64_t& count, Bytes bytes) {
    check_size(reference, bytes.size());
    count += std::ssize(bytes);
    return item_of(reference, std::move(bytes));
  };
  if (!reference.frames.empty()) {
    throw invalid("lists of frames are not supported: send the video as one file", reference);
  }
  if (reference.url.empty()) {
    check_size(reference, reference.bytes.size());
    counts.body_bytes += std::ssize(reference.bytes);
    return borrowed_item(reference);
  }
  const std::string& url = reference.url;
  if (is_data_url(url)) {
    const std::optional<DataUrl> parts = parse_data_url(url);
    if (!parts) throw invalid("expected data:<type>;base64,<data>", reference);
    return counted(counts.data_bytes, base64(reference, parts->base64));
  }
  if (begins_with(url, "file:")) {
    return counted(counts.file_bytes, files.read(url, max_bytes(reference), reference.param));
  }
  if (is_http_url(url)) {
    throw ApiError(403, "media_url_blocked", "this server fetches no media", reference.param);
  }
  if (url.find(':') != std::string::npos) {
    throw invalid("expected a data:, http:, https: or file: URL, or base64, got \"" +
                      shortened(url, kMaxQuoted) + "\"",
                  reference);
  }
  return counted(counts.data_bytes, base64(reference, url));
}

MediaSource::MediaSource(MediaSourceOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

MediaSource::~MediaSource() = default;

void MediaSource::resolve(std::vector<MediaReference> references, const CallBounds& /*bounds*/,
                          Done done) {
  ResolvedMedia media;
  try {
    for (const MediaReference& reference : references) {
      media.items.push_back(impl_->local_item(reference, media.counts));
    }
  } catch (...) {
    done({}, std::current_exception());
    return;
  }
  done(std::move(media), nullptr);
}

const MediaSourceOptions& MediaSource::options() const noexcept { return impl_->options; }

}  // namespace fovea::serve
