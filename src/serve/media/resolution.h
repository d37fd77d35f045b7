#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "serve/api_error.h"
#include "serve/media/fetcher.h"
#include "serve/media/media_source.h"

namespace fovea::serve {

/// A request's media while some of them are fetched. The fetches hold it by shared_ptr.
class Resolution : public std::enable_shared_from_this<Resolution> {
 public:
  /// @param media what needs no fetch, with empty items in the places of the others.
  /// @param fetches how often start() will be called. @param done as in MediaSource::resolve().
  Resolution(ResolvedMedia media, std::size_t fetches, const CallBounds& bounds,
             MediaSource::Done done);

  /// Fetches the item of a place. The first that fails ends the others.
  void start(Fetcher& fetcher, Fetch fetch, std::size_t place, MediaReference reference);

 private:
  struct Stop {
    std::stop_source* source;
    void operator()() const { source->request_stop(); }
  };

  void finish(std::size_t place, const MediaReference& reference, Fetched fetched,
              std::exception_ptr error);
  void end();

  Clock::time_point start_;
  Clock::time_point deadline_;
  std::mutex mutex_;  // guards the next three until nothing is pending
  ResolvedMedia media_;
  std::exception_ptr error_;
  std::size_t pending_;
  MediaSource::Done done_;
  std::stop_source stop_;
  std::stop_callback<Stop> by_client_;
};

/// The item that a reference and its bytes make. @throws ApiError(400) if there are none.
[[nodiscard]] MediaItem item_of(const MediaReference& reference, MediaBytes bytes);

/// 422 "image_too_large" or "video_too_large": encoded media beyond its limit, wherever it is from.
[[nodiscard]] ApiError too_large(Modality modality, std::size_t max_bytes,
                                 const std::string& param);

}  // namespace fovea::serve
