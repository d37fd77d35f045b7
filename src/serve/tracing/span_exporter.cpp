#include "serve/tracing/span_exporter.h"

#include <algorithm>
#include <limits>
#include <system_error>
#include <utility>

#include "core/blocked_signals.h"
#include "core/check.h"
#include "fovea/error.h"
#include "libcurl/handles.h"

namespace fovea::serve {
namespace {

using std::chrono::milliseconds;

/// From the steady clock to that of the system, as of now.
std::chrono::nanoseconds clock_offset() {
  using std::chrono::steady_clock, std::chrono::system_clock, std::chrono::nanoseconds;
  return std::chrono::duration_cast<nanoseconds>(system_clock::now().time_since_epoch()) -
         std::chrono::duration_cast<nanoseconds>(steady_clock::now().time_since_epoch());
}

/// Time to send what is left.
constexpr std::chrono::seconds kLastTime{3};

std::int64_t ticks_of(std::chrono::steady_clock::time_point time) {
  return time.time_since_epoch().count();
}

/// Ends a request once its time is over.
int check_time(void* last_moment, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto& moment = *static_cast<const std::atomic<std::int64_t>*>(last_moment);
  return ticks_of(std::chrono::steady_clock::now()) > moment ? 1 : 0;
}

std::size_t drop(char*, std::size_t size, std::size_t count, void*) { return size * count; }

/// Whether the same request may succeed later. Source: OTLP 1.5, "Retryable Response Codes".
bool is_retryable(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

}  // namespace

SpanExporter::SpanExporter(TracingOptions options, LogSink* log, Collect collect)
    : options_(std::move(options)),
      log_(log),
      collect_(std::move(collect)),
      last_moment_(std::numeric_limits<std::int64_t>::max()) {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  const BlockedSignals none;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::kIo, cat("a thread for spans: ", error.what()));
  }
}

SpanExporter::~SpanExporter() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  last_moment_ = ticks_of(std::chrono::steady_clock::now() + kLastTime);
  changed_.notify_all();
  thread_.join();
}

void SpanExporter::add(Span span) noexcept {
  bool is_much = false;
  {
    const std::lock_guard lock(mutex_);
    try {
      if (queue_.size() < options_.max_queue) {
        queue_.push_back(std::move(span));
      } else {
        ++stats_.queue_full;
      }
    } catch (const std::bad_alloc&) {
      ++stats_.queue_full;
    }
    is_much = queue_.size() == options_.max_batch;
  }
  if (is_much) changed_.notify_all();
}

ExportStats SpanExporter::stats() const noexcept {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void SpanExporter::run() noexcept {
  for (bool is_last = false; !is_last;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, options_.delay,
                        [&] { return ends_ || queue_.size() >= options_.max_batch; });
      is_last = ends_;
    }
    try {
      send_all(is_last);
    } catch (const std::exception&) {  // NOLINT: no memory; the spans are gone
    }
  }
}

void SpanExporter::send_all(bool is_last) {
  std::vector<Span> made;
  if (collect_) collect_(made, is_last);
  for (Span& span : made) add(std::move(span));
  for (std::vector<Span> spans = take(); !spans.empty(); spans = take()) {
    if (send(spans, is_last) || !is_last) continue;
    const std::lock_guard lock(mutex_);  // no time is left for more
    stats_.not_sent += static_cast<std::int64_t>(queue_.size());
    queue_.clear();
  }
}

std::vector<Span> SpanExporter::take() {
  const std::lock_guard lock(mutex_);
  std::vector<Span> spans;
  const std::size_t count = std::min(queue_.size(), options_.max_batch);
  spans.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    spans.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return spans;
}

void SpanExporter::follow_clock() {
  constexpr std::chrono::milliseconds kTrembling{1};
  const std::chrono::nanoseconds now = clock_offset();
  if (std::chrono::abs(now - offset_) > kTrembling) offset_ = now;
}

bool SpanExporter::send(const std::vector<Span>& spans, bool is_last) {
  bool is_taken = false;
  std::string reason;
  try {
    is_taken = try_to_send(spans, is_last, reason);
  } catch (const std::exception& error) {  // libcurl takes an option not, or there is no memory
    reason = error.what();
  }
  {
    const std::lock_guard lock(mutex_);
    (is_taken ? stats_.sent : stats_.not_sent) += static_cast<std::int64_t>(spans.size());
  }
  note(is_taken ? "" : reason);
  return is_taken;
}

bool SpanExporter::try_to_send(const std::vector<Span>& spans, bool is_last, std::string& reason) {
  constexpr int kAttempts = 4;
  constexpr milliseconds kFirstPause{500};
  follow_clock();
  const std::string body = otlp_request(options_.encoding, options_.resource, spans, offset_);
  Attempt attempt = Attempt::kAgain;
  milliseconds pause = kFirstPause;
  for (int i = 0; i < kAttempts && attempt == Attempt::kAgain; ++i, pause *= 2) {
    if (i > 0 && (is_last || !wait(pause))) break;
    attempt = post(body, reason);
  }
  return attempt == Attempt::kTaken;
}

bool SpanExporter::wait(milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [&] { return ends_; });
}

void SpanExporter::note(const std::string& reason) {
  if (reason.empty() == is_reached_) return;
  is_reached_ = reason.empty();
  if (log_ == nullptr) return;
  if (is_reached_) {
    log_->write(LogLevel::kInfo, "tracing.sent url=" + options_.url);
  } else {
    log_->write(LogLevel::kWarning,
                "tracing: spans are not taken by " + options_.url + ": " + reason);
  }
}

SpanExporter::Attempt SpanExporter::post(const std::string& body, std::string& reason) const {
  curl::Easy easy;
  curl::Lines headers(std::string("Content-Type: ") + content_type(options_.encoding));
  headers.append("Expect:");
  for (const Header& header : options_.headers) headers.append(header.name + ": " + header.value);
  easy.set_common();
  easy.set(CURLOPT_URL, options_.url.c_str());
  easy.set(CURLOPT_HTTPHEADER, headers.get());
  easy.set(CURLOPT_POSTFIELDS, body.data());
  easy.set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  easy.set(CURLOPT_TIMEOUT_MS, static_cast<long>(options_.timeout.count()));
  easy.set(CURLOPT_PROXY, "");
  easy.set(CURLOPT_NOPROGRESS, 0L);
  easy.set(CURLOPT_XFERINFOFUNCTION, check_time);
  easy.set(CURLOPT_XFERINFODATA, &last_moment_);
  easy.set(CURLOPT_WRITEFUNCTION, drop);
  const CURLcode code = curl_easy_perform(easy.get());
  if (code != CURLE_OK) {
    reason = curl_easy_strerror(code);
    return Attempt::kAgain;
  }
  const int status = easy.status();
  if (status >= 200 && status < 300) return Attempt::kTaken;
  reason = "status " + std::to_string(status);
  return is_retryable(status) ? Attempt::kAgain : Attempt::kRefused;
}

}  // namespace fovea::serve
