#include "serve/metrics/request_metrics.h"

namespace fovea::serve {
namespace {

constexpr std::array kModalities{"image", "video"};
constexpr double kMsPerSecond = 1000;

}  // namespace

void RequestMetrics::observe(const Served& served) {
  bytes_in_ += static_cast<std::int64_t>(served.bytes_in);
  bytes_out_ += static_cast<std::int64_t>(served.bytes_out);
  const std::lock_guard lock(mutex_);
  RouteCounts& counts = routes_[served.route == nullptr ? "none" : served.route->pattern];
  ++counts.by_status[served.status];
  counts.durations.observe(served.duration.count());
  if (!served.error_code.empty()) ++errors_[std::string(served.error_code)];
}

void RequestMetrics::observe(const JobReply& reply, std::span<const PlannedItem> items) {
  for (const PlannedItem& item : items) {
    ModalityCounts& counts = modalities_[static_cast<std::size_t>(item.media().modality)];
    ++(reply.error ? counts.failed : counts.ok);
  }
  if (reply.error) return;
  queue_.observe(reply.queue_ms / kMsPerSecond);
  for (const auto& item : reply.items) {
    modalities_[static_cast<std::size_t>(item->modality)].rows += item->rows;
    frames_ += item->num_frames;
    pixels_ += item->source_width_px * item->source_height_px * item->num_frames;
    for (std::size_t i = 0; i < kStages.size(); ++i) {
      stages_[i].observe(item->times.*kStages[i].ms / kMsPerSecond);
    }
  }
}

void RequestMetrics::observe(const MediaCounts& media) noexcept {
  const std::array bytes{media.body_bytes, media.data_bytes, media.http_bytes, media.file_bytes};
  for (std::size_t i = 0; i < bytes.size(); ++i) media_bytes_[i] += bytes[i];
}

void RequestMetrics::write(MetricsText& text) const {
  write_routes(text);
  write_items(text);
}

void RequestMetrics::write_routes(MetricsText& text) const {
  const std::lock_guard lock(mutex_);
  text.counter("fovea_requests_total", "Requests answered, by status; 499: the client left first.");
  for (const auto& [route, counts] : routes_) {
    for (const auto& [status, count] : counts.by_status) {
      text.sample(count, {{"route", route}, {"status", std::to_string(status)}});
    }
  }
  text.histogram("fovea_request_duration_seconds", "From the first byte in to the last byte out.");
  for (const auto& [route, counts] : routes_) counts.durations.write(text, {{"route", route}});
  text.counter("fovea_errors_total", "Error replies by code.");
  for (const auto& [code, count] : errors_) text.sample(count, {{"code", code}});
  text.counter("fovea_request_bytes_total", "Bytes of request bodies.");
  text.sample(bytes_in_.load());
  text.counter("fovea_reply_bytes_total", "Bytes of replies.");
  text.sample(bytes_out_.load());
}

void RequestMetrics::write_items(MetricsText& text) const {
  text.counter("fovea_items_total", "Items of requests, by what became of their request.");
  for (std::size_t i = 0; i < modalities_.size(); ++i) {
    text.sample(modalities_[i].ok.load(), {{"modality", kModalities[i]}, {"result", "ok"}});
    text.sample(modalities_[i].failed.load(), {{"modality", kModalities[i]}, {"result", "error"}});
  }
  text.counter("fovea_rows_total", "Rows of embeddings made.");
  for (std::size_t i = 0; i < modalities_.size(); ++i) {
    text.sample(modalities_[i].rows.load(), {{"modality", kModalities[i]}});
  }
  text.counter("fovea_media_bytes_total", "Encoded bytes of media, by where they came from.");
  for (std::size_t i = 0; i < media_bytes_.size(); ++i) {
    text.sample(media_bytes_[i].load(), {{"source", kMediaSources[i]}});
  }
  text.counter("fovea_input_pixels_total", "Pixels of the images and frames encoded.");
  text.sample(pixels_.load());
  text.counter("fovea_input_frames_total", "Images and frames of videos encoded.");
  text.sample(frames_.load());
  text.histogram("fovea_stage_duration_seconds",
                 "Time in each stage: of requests in the queue, of items in the others.");
  queue_.write(text, {{"stage", "queue"}});
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    stages_[i].write(text, {{"stage", kStages[i].name}});
  }
}

}  // namespace fovea::serve
