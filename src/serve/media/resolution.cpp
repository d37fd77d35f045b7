#include "serve/media/resolution.h"

#include <chrono>
#include <utility>

#include "core/json_writer.h"

namespace fovea::serve {

Resolution::Resolution(ResolvedMedia media, std::size_t fetches, const CallBounds& bounds,
                       MediaSource::Done done)
    : start_(Clock::now()),
      deadline_(bounds.deadline),
      media_(std::move(media)),
      pending_(fetches),
      done_(std::move(done)),
      by_client_(bounds.stop, Stop{&stop_}) {}

void Resolution::start(Fetcher& fetcher, Fetch fetch, std::size_t place, MediaReference reference) {
  fetch.bounds = {.stop = stop_.get_token(), .deadline = deadline_};
  try {
    fetcher.fetch(std::move(fetch),
                  [self = shared_from_this(), place, reference = std::move(reference)](
                      Fetched fetched, const std::exception_ptr& error) {
                    self->finish(place, reference, std::move(fetched), error);
                  });
  } catch (...) {
    finish(place, {}, {}, std::current_exception());
  }
}

void Resolution::finish(std::size_t place, const MediaReference& reference, Fetched fetched,
                        std::exception_ptr error) {
  const auto size = std::ssize(fetched.bytes);
  MediaItem item;
  try {
    const auto kept = std::make_shared<const Fetched>(std::move(fetched));
    if (!error) item = item_of(reference, {kept->bytes, kept});
  } catch (...) {
    error = std::current_exception();
  }
  bool is_last = false;
  {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
    media_.items[place] = std::move(item);
    media_.counts.http_bytes += size;
    is_last = --pending_ == 0;
  }
  if (is_last) {
    end();
  } else if (error) {
    stop_.request_stop();
  }
}

void Resolution::end() {
  const std::chrono::duration<double, std::milli> took = Clock::now() - start_;
  media_.counts.fetch_ms = took.count();
  if (error_) media_ = {};
  done_(std::move(media_), error_);
}

MediaItem item_of(const MediaReference& reference, MediaBytes bytes) {
  if (bytes.view().empty()) {
    throw ApiError(400, "invalid_value", "the media has no bytes", reference.param);
  }
  MediaItem item =
      reference.modality == Modality::kImage
          ? image_bytes(std::move(bytes), reference.param)
          : video_bytes(std::move(bytes), reference.param, reference.fps.value_or(kDefaultFps));
  item.mm_processor_kwargs = options_text(reference);
  return item;
}

std::string options_text(const MediaReference& reference) {
  std::string text;
  for (const auto& [name, option] : reference.options) {
    text += text.empty() ? '{' : ',';
    append_json(text, name);
    text += ':' + option.json;
  }
  return text.empty() ? text : text + '}';
}

ApiError too_large(Modality modality, std::size_t max_bytes, const std::string& param) {
  const std::string name = to_string(modality);
  return {422, name + "_too_large",
          "the encoded " + name + " has more than " + std::to_string(max_bytes) + " bytes (--max-" +
              name + "-bytes)",
          param};
}

}  // namespace fovea::serve
