#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

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

}  // namespace fovea::serve
