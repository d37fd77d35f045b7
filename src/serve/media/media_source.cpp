#include "serve/media/media_source.h"

#include <memory>
#include <optional>
#include <utility>

#include "core/interrupt.h"
#include "serve/api_error.h"
#include "serve/media/fetcher.h"
#include "serve/media/frame_lists.h"
#include "serve/media/local_files.h"
#include "serve/media/resolution.h"
#include "serve/text/base64.h"
#include "serve/text/url.h"

namespace fovea::serve {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Longest part of a client's text that a message repeats.
constexpr std::size_t kMaxQuoted = 60;

ApiError invalid(const std::string& message, const MediaReference& reference) {
  return {400, "invalid_value", message, reference.param};
}

/// A hint at what text that is no base64 looks like, and what to send instead; may be empty.
std::string hint_of(std::string_view text) {
  if (text.find_first_of("\r\n") != std::string_view::npos) {
    return ": it has line breaks; expected one line, as of base64 -w 0";
  }
  if (text.find_first_of(".\\~") != std::string_view::npos) {
    return ": paths are not read; expected the bytes, or a file: URL below the folder of "
           "--allowed-local-media-path";
  }
  return "";
}

/// The step between the items and the caller: videos take the places of their frames, and bytes
/// are counted.
MediaSource::Done finishing(FrameLists lists, const MediaSourceOptions& options,
                            MediaSource::Done done) {
  return [lists = std::move(lists), &options, done = std::move(done)](
             ResolvedMedia media, const std::exception_ptr& error) {
    std::exception_ptr failure = error;
    try {
      if (!failure) lists.join(media.items);
    } catch (...) {
      failure = std::current_exception();
    }
    if (!failure && options.on_resolved) options.on_resolved(media.counts);
    done(std::move(media), failure);
  };
}

}  // namespace

struct MediaSource::Impl {
  explicit Impl(MediaSourceOptions given)
      : options(std::move(given)), files(options.allowed_local_path) {
    for (const std::string& domain : options.allowed_domains) {
      if (is_domain(domain)) continue;
      throw Error(ErrorCode::kInvalidArgument,
                  "\"" + domain + "\": expected a host, or *. and a domain, in lower case");
    }
    if (options.policy != UrlPolicy::kNone) fetcher.emplace(options);
  }

  /// @throws ApiError(400) for a URL, other than that of data, that is longer than any in use.
  static void check_url(const MediaReference& reference);
  /// The item, if nothing has to be fetched for it. @throws ApiError.
  MediaItem local_item(const MediaReference& reference, MediaCounts& counts) const;
  [[nodiscard]] Bytes base64(const MediaReference& reference, std::string_view text) const;
  [[nodiscard]] std::size_t max_bytes(const MediaReference& reference) const {
    return reference.modality == Modality::kImage ? options.max_image_bytes
                                                  : options.max_video_bytes;
  }
  void check_size(const MediaReference& reference, std::size_t bytes) const;
  [[nodiscard]] bool is_fetched(const MediaReference& reference) const {
    return fetcher && is_http_url(reference.url);
  }
  [[nodiscard]] Fetch fetch_of(const MediaReference& reference) const {
    const bool is_image = reference.modality == Modality::kImage;
    return {.url = std::string(reference.url),
            .modality = reference.modality,
            .max_bytes = max_bytes(reference),
            .timeout = is_image ? options.image_timeout : options.video_timeout,
            .bounds = {},
            .param = reference.param,
            .client = {}};
  }

  MediaSourceOptions options;
  LocalFiles files;
  std::optional<Fetcher> fetcher;  ///< unless the policy is kNone
};

void MediaSource::Impl::check_size(const MediaReference& reference, std::size_t bytes) const {
  if (bytes <= max_bytes(reference)) return;
  throw too_large(reference.modality, max_bytes(reference), reference.param);
}

void MediaSource::Impl::check_url(const MediaReference& reference) {
  if (reference.url.size() <= kMaxUrlBytes) return;
  const bool is_url = is_http_url(reference.url) || begins_with(reference.url, "file:");
  if (!is_url) return;
  throw invalid("expected a URL of at most " + std::to_string(kMaxUrlBytes) + " bytes, got " +
                    std::to_string(reference.url.size()),
                reference);
}

Bytes MediaSource::Impl::base64(const MediaReference& reference, std::string_view text) const {
  constexpr std::size_t kMostPadding = 2;
  if (base64_bytes(text) > max_bytes(reference) + kMostPadding) {
    check_size(reference, base64_bytes(text));
  }
  std::optional<Bytes> bytes = from_base64(text);
  if (!bytes) throw invalid("the media is not valid base64" + hint_of(text), reference);
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
  if (reference.url.empty()) {
    check_size(reference, reference.bytes.size());
    counts.body_bytes += std::ssize(reference.bytes);
    return item_of(reference, {reference.bytes, reference.owner});
  }
  const std::string_view url = reference.url;
  if (is_data_url(url)) {
    const std::optional<DataUrl> parts = parse_data_url(url);
    if (!parts) throw invalid("expected data:<type>;base64,<data>", reference);
    return counted(counts.data_bytes, base64(reference, parts->base64));
  }
  if (begins_with(url, "file:")) {
    return counted(counts.file_bytes, files.read(url, max_bytes(reference), reference.param));
  }
  if (is_http_url(url)) {
    throw ApiError(403, "media_url_blocked", "this server fetches no media (--media-url-policy)",
                   reference.param);
  }
  if (url.find(':') != std::string_view::npos) {
    throw invalid("expected a data:, http:, https: or file: URL, or base64, got \"" +
                      shortened(url, kMaxQuoted) + "\"",
                  reference);
  }
  return counted(counts.data_bytes, base64(reference, url));
}

MediaSource::MediaSource(MediaSourceOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

MediaSource::~MediaSource() = default;

void MediaSource::use_headers(FetchHeaders headers) {
  if (impl_->fetcher) impl_->fetcher->use_headers(std::move(headers));
}

void MediaSource::resolve(std::vector<MediaReference> references, const CallBounds& bounds,
                          const std::string& client, Done done) {
  ResolvedMedia media;
  std::vector<std::size_t> fetched;
  try {
    FrameLists lists(references, impl_->options.max_frames);
    done = finishing(std::move(lists), impl_->options, std::move(done));
    media.items.reserve(references.size());
    for (std::size_t i = 0; i < references.size(); ++i) {
      check_interrupt();
      Impl::check_url(references[i]);
      if (impl_->is_fetched(references[i])) {
        fetched.push_back(i);
        media.items.emplace_back();
      } else {
        media.items.push_back(impl_->local_item(references[i], media.counts));
      }
    }
  } catch (...) {
    done({}, std::current_exception());
    return;
  }
  if (fetched.empty()) {
    done(std::move(media), nullptr);
    return;
  }
  const auto resolution =
      std::make_shared<Resolution>(std::move(media), fetched.size(), bounds, std::move(done));
  for (const std::size_t i : fetched) {
    Fetch fetch = impl_->fetch_of(references[i]);
    fetch.client = client;
    references[i].url = {};  // the request's, which may be gone when the fetch ends
    resolution->start(*impl_->fetcher, std::move(fetch), i, std::move(references[i]));
  }
}

const MediaSourceOptions& MediaSource::options() const noexcept { return impl_->options; }

}  // namespace fovea::serve
