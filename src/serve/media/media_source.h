#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/call_bounds.h"
#include "fovea/media.h"
#include "serve/http/message.h"
#include "serve/media/fetch_headers.h"
#include "serve/media/proxy_rules.h"

namespace fovea::serve {

/// Which hosts media may be fetched from.
enum class UrlPolicy : std::uint8_t {
  kNone,       ///< no fetching at all
  kAllowlist,  ///< hosts of the list, at public addresses
  kPublic,     ///< any host at public addresses
  kAny,        ///< any address, private ones too: for closed networks
};

/// Where the bytes of a request came from, for metrics.
struct MediaCounts {
  std::int64_t body_bytes = 0;
  std::int64_t data_bytes = 0;
  std::int64_t http_bytes = 0;
  std::int64_t file_bytes = 0;
  double fetch_ms = 0;  ///< from the first fetch to the end of the last; 0 without fetches
};

/// Where media may come from, and how much of it. Source: docs/serving.md, "Media".
struct MediaSourceOptions {
  UrlPolicy policy = UrlPolicy::kPublic;
  std::vector<std::string> allowed_domains;  ///< "example.org", "*.example.org"; lower case
  std::vector<std::uint16_t> allowed_ports{80, 443};
  std::string allowed_local_path;  ///< folder for file: URLs; empty: none
  FetchHeaders headers;            ///< of fetches, beside the transport's own
  ProxyRules proxies;
  /// The proxy looks names up, so that addresses cannot be checked: not with kPublic.
  bool proxy_looks_up = false;
  int max_redirects = 3;
  std::chrono::milliseconds connect_timeout{3'000};
  std::chrono::milliseconds image_timeout{5'000};
  std::chrono::milliseconds video_timeout{30'000};
  std::size_t max_image_bytes = std::size_t{32} << 20;
  std::size_t max_video_bytes = std::size_t{512} << 20;
  std::int64_t max_frames = 2048;  ///< of a video that comes frame by frame
  int max_fetches = 16;            ///< at the same time; others wait
  /// Room for fetched bytes, held as long as the item; null if there is none. Empty: no bound.
  std::function<std::shared_ptr<void>(std::size_t bytes)> take_room = {};
  /// Told of every request whose media are there. Must not wait or throw.
  std::function<void(const MediaCounts& counts)> on_resolved = {};
};

/// Frames per second at which videos are sampled where nothing else is said.
inline constexpr double kDefaultFps = 2.0;

/// The value of an option of an item, and where it stands in the request, for messages.
struct ItemOption {
  std::string json;
  std::string param;
};

/// One item as a request names it. Texts refer to the request.
struct MediaReference {
  Modality modality = Modality::kImage;
  /// `data:` or `http(s):` or `file:` URL, or bare base64. Of a video its container, unless there
  /// are `frames`.
  std::string_view url;
  std::vector<std::string_view> frames;  ///< of a video: one `url` for each sampled frame
  /// Bytes that came with the request itself, in place of a URL.
  std::span<const std::uint8_t> bytes;
  SharedBytes owner;                          ///< of `bytes`
  std::optional<double> fps;                  ///< of the item itself; absent: kDefaultFps
  std::map<std::string, ItemOption> options;  ///< MediaItem::mm_processor_kwargs, by their names
  std::string param;  ///< where it stands in the request, for messages: "items[2].image"
};

struct ResolvedMedia {
  std::vector<MediaItem> items;  ///< in the order of the references; named by their `param`
  MediaCounts counts;
};

/// The options of a reference as MediaItem has them.
[[nodiscard]] std::string options_text(const MediaReference& reference);

/// Turns what requests name into items. Decodes base64 and reads files on the calling thread;
/// fetches on threads of its own.
class MediaSource {
 public:
  /// @throws Error(kInvalidArgument) for a folder that is not there, a domain that is none.
  explicit MediaSource(MediaSourceOptions options);
  /// Ends fetches that run.
  ~MediaSource();
  MediaSource(const MediaSource&) = delete;
  MediaSource& operator=(const MediaSource&) = delete;

  /// Gets the items of a request's media, or the reason why there are none: an ApiError.
  using Done = std::function<void(ResolvedMedia media, std::exception_ptr error)>;

  /// Calls `done` once: before it returns if nothing is fetched, on a thread of its own otherwise.
  /// The first reference that fails, fails all, with an ApiError whose param is the reference's.
  /// @param references whose texts are not looked at once this has returned.
  /// @param bounds end the fetches. @param client whose fetches they are (Client::name).
  void resolve(std::vector<MediaReference> references, const CallBounds& bounds,
               const std::string& client, Done done);

  /// Headers of the fetches to come, in place of those of the options.
  void use_headers(FetchHeaders headers);

  [[nodiscard]] const MediaSourceOptions& options() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fovea::serve
