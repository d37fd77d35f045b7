// Progress on the status line: how far, how fast, how long.
#include "progress.h"

#include <cmath>

#include "report/text.h"

namespace fovea::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kWindow{30};            // of which the rate is
constexpr milliseconds kMarkPeriod{500};  // a mark takes 16 bytes
constexpr seconds kLeastWindow{2};        // a shorter one tells nothing
constexpr milliseconds kShowPeriod{100};
constexpr seconds kPrintPeriod{60};

/// "12 s", "46 min", "5 h 10 min", "3 d 2 h".
std::string duration_text(double all_seconds) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  const auto whole = static_cast<std::int64_t>(std::ceil(std::min(all_seconds, 1e9)));
  const auto text = [](std::int64_t count, const char* unit) {
    return std::to_string(count) + " " + unit;
  };
  if (whole < 2 * kMinute) return text(whole, "s");
  if (whole < 2 * kHour) return text((whole + kMinute / 2) / kMinute, "min");
  if (whole < 2 * kDay) return text(whole / kHour, "h ") + text(whole % kHour / kMinute, "min");
  return text(whole / kDay, "d ") + text(whole % kDay / kHour, "h");
}

}  // namespace

std::string progress_text(const ProgressCount& count, double per_second) {
  std::string text = std::to_string(count.done) + "/" + std::to_string(count.total);
  if (per_second <= 0) return text;
  const bool is_slow = per_second < 1;
  text += ", " + (is_slow ? fixed(per_second * 60, 1) + "/min" : fixed(per_second, 1) + "/s");
  if (count.done >= count.total) return text;
  const auto left = static_cast<double>(count.total - count.done);
  return text + ", " + duration_text(left / per_second) + " left";
}

Progress::Progress(Console& console, std::string label, std::int64_t total,
                   Clock::time_point (*now)())
    : console_(console),
      label_(std::move(label)),
      now_(now),
      count_{.done = 0, .total = total},
      marks_{{now(), 0}},
      shown_(now() - kShowPeriod),
      printed_(now()) {
  show();
}

Progress::~Progress() { console_.set_status(""); }

void Progress::advance() {
  const std::scoped_lock lock(mutex_);
  ++count_.done;
  show();
}

void Progress::set(std::int64_t done, std::int64_t total) {
  const std::scoped_lock lock(mutex_);
  count_ = {.done = done, .total = total};
  show();
}

void Progress::set_done(std::int64_t done) {
  const std::scoped_lock lock(mutex_);
  count_.done = done;
  show();
}

void Progress::set_total(std::int64_t total) {
  const std::scoped_lock lock(mutex_);
  count_.total = total;
  show();
}

void Progress::show() {
  const Clock::time_point now = now_();
  const double rate = per_second(now);
  const bool is_last = count_.total > 0 && count_.done >= count_.total;
  if (now - shown_ < kShowPeriod && !is_last) return;
  shown_ = now;
  const std::string text = count_.total > 0 ? label_ + " " + progress_text(count_, rate) : label_;
  console_.set_status(text);
  if (now - printed_ < kPrintPeriod) return;
  printed_ = now;
  console_.note_progress(text);
}

double Progress::per_second(Clock::time_point now) {
  if (now - marks_.back().time >= kMarkPeriod) marks_.push_back({now, count_.done});
  while (marks_.size() > 2 && now - marks_[1].time >= kWindow) marks_.pop_front();
  const Mark& first = marks_.front();
  if (now - first.time < kLeastWindow) return 0;
  const std::chrono::duration<double> time = now - first.time;
  return static_cast<double>(count_.done - first.done) / time.count();
}

}  // namespace fovea::cli
