#include "serve/metrics/trace.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "core/json_writer.h"
#include "fovea/atomic_file.h"
#include "serve/api_error.h"
#include "serve/rows/item_json.h"

namespace fovea::serve {
namespace {

constexpr double kMicrosecondsPerMs = 1000;

std::int64_t now_us() {
  using std::chrono::duration_cast;
  return duration_cast<std::chrono::microseconds>(Clock::now().time_since_epoch()).count();
}

std::int64_t microseconds(double ms) {
  return static_cast<std::int64_t>(std::max(ms, 0.0) * kMicrosecondsPerMs);
}

std::string request_arguments(const Served& served) {
  JsonObject json;
  json.set("id", served.head.id);
  json.set("status", served.status);
  json.set("bytes_in", served.bytes_in);
  json.set("bytes_out", served.bytes_out);
  return to_json_text(json);
}

std::string job_arguments(const JobReply& reply) {
  JsonObject json;
  json.set("items", reply.items.size());
  std::int64_t rows = 0;
  for (const auto& item : reply.items) rows += item->rows;
  json.set("rows", rows);
  json.set("failed", reply.error != nullptr);
  return to_json_text(json);
}

std::string batch_arguments(const JobReply& reply) {
  JsonObject json;
  json.set("batch_items", reply.batch_items);
  json.set("stages_ms", stages_json(total(reply.items)));
  return to_json_text(json);
}

}  // namespace

void Trace::start() {
  if (folder_.empty()) {
    throw ApiError(403, "profiling_off", "this server writes no profiles (--profile-dir)");
  }
  const std::lock_guard lock(mutex_);
  if (runs_) throw ApiError(409, "profile_running", "a profile is being taken; stop it first");
  spans_.clear();
  dropped_ = 0;
  runs_ = true;
}

std::string Trace::stop() {
  using std::chrono::system_clock;
  std::vector<Span> spans;
  std::int64_t dropped = 0;
  std::int64_t file_number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!runs_) throw ApiError(409, "no_profile", "no profile is being taken; start one first");
    runs_ = false;
    spans = std::exchange(spans_, {});
    dropped = dropped_;
    file_number = files_++;
  }
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(system_clock::now().time_since_epoch());
  std::string name =
      "fovea-" + std::to_string(seconds.count()) + "-" + std::to_string(file_number) + ".json";
  try {
    const std::string json = text(spans, dropped);
    AtomicFile file(folder_ + "/" + name);
    file.write(std::as_bytes(std::span(json)));
    file.commit();
  } catch (const Error& error) {
    ApiError failure(507, "profile_not_written",
                     "the profile cannot be written to --profile-dir; the log says why");
    failure.detail = error.what();
    throw failure;
  }
  return name;
}

void Trace::observe(const Served& served) noexcept {
  if (!runs_) return;
  try {
    const std::int64_t end = now_us();
    const double ms = std::chrono::duration<double, std::milli>(served.duration).count();
    add({.kind = "request",
         .number = numbers_++,
         .name =
             served.route == nullptr ? "none" : served.route->method + " " + served.route->pattern,
         .begin = end - microseconds(ms),
         .end = end,
         .arguments = request_arguments(served)});
  } catch (const std::bad_alloc&) {  // NOLINT: a span less
  }
}

void Trace::observe(const JobReply& reply) noexcept {
  if (!runs_) return;
  try {
    add_job(reply);
  } catch (const std::bad_alloc&) {  // NOLINT: a span less
  }
}

void Trace::add_job(const JobReply& reply) {
  const std::int64_t end = now_us();
  const std::int64_t run = end - microseconds(reply.run_ms);
  const std::int64_t begin = run - microseconds(reply.queue_ms);
  const std::int64_t number = numbers_++;
  add({"job", number, "job", begin, end, job_arguments(reply)});
  add({"job", number, "queue", begin, run, "{}"});
  add({"job", number, "batch", run, end, batch_arguments(reply)});
}

void Trace::add(Span span) {
  const std::lock_guard lock(mutex_);
  if (!runs_) return;
  if (spans_.size() < max_spans_) {
    spans_.push_back(std::move(span));
  } else {
    ++dropped_;
  }
}

std::string Trace::text(const std::vector<Span>& spans, std::int64_t dropped) const {
  std::string json =
      "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"dropped_spans\":" + std::to_string(dropped) +
      "},\"traceEvents\":[";
  const auto add_event = [&](const Span& span, char phase, std::int64_t time) {
    if (!json.ends_with('[')) json += ",\n";
    json += R"({"pid":1,"tid":1,"ph":")";
    json += phase;
    json += "\",\"cat\":\"" + std::string(span.kind) + "\",\"id\":" + std::to_string(span.number) +
            ",\"name\":" + json_quote(span.name) + ",\"ts\":" + std::to_string(time) +
            ",\"args\":" + span.arguments + "}";
  };
  for (const Span& span : spans) {
    add_event(span, 'b', span.begin);
    add_event(span, 'e', span.end);
  }
  return json + "]}\n";
}

}  // namespace fovea::serve
