// Who waits for a place that several processes share, and for how long.
#include "rows/shared/shared_rows.h"

#include <algorithm>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "core/blocked_signals.h"
#include "core/check.h"
#include "core/row_dtype.h"
#include "rows/shared/folder_place.h"

namespace fovea {
namespace {

using std::chrono::milliseconds;

/// Work on a thread of its own, and who waits for it. Both have it: the thread may be left behind.
class Errand {
 public:
  void end(std::exception_ptr problem) noexcept {
    {
      const std::lock_guard lock(mutex_);
      problem_ = std::move(problem);
      is_over_ = true;
    }
    over_.notify_all();
  }
  /// The problem of work that is over, null without one; nothing if it is not over in time.
  [[nodiscard]] std::optional<std::exception_ptr> wait(milliseconds most,
                                                       const std::stop_token& ends) {
    std::unique_lock lock(mutex_);
    if (!over_.wait_for(lock, ends, most, [this] { return is_over_; })) return std::nullopt;
    return problem_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any over_;
  bool is_over_ = false;
  std::exception_ptr problem_;
};

/// What an exception says.
std::string text_of(const std::exception_ptr& problem) {
  try {
    std::rethrow_exception(problem);
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

std::shared_ptr<RowPlace> make_row_place(const EngineOptions& options) {
  const EngineOptions defaults;
  const std::string& place = options.shared_rows;
  if (place.starts_with("redis://") || place.starts_with("rediss://")) {
    FOVEA_CHECK(options.shared_rows_bytes == defaults.shared_rows_bytes, kInvalidArgument,
                "shared_rows_bytes bounds a folder; a Redis server has maxmemory");
    return make_redis_place(place, options.shared_rows_seconds);
  }
  FOVEA_CHECK(place.find("://") == std::string::npos, kInvalidArgument,
              "shared_rows: expected a folder or redis://HOST:PORT/DB, got ", place);
  FOVEA_CHECK(options.shared_rows_seconds == defaults.shared_rows_seconds, kInvalidArgument,
              "shared_rows_seconds is for a Redis server; a folder is bounded by "
              "shared_rows_bytes");
  return std::make_shared<FolderPlace>(place, options.shared_rows_bytes);
}

SharedRows::SharedRows(std::shared_ptr<RowPlace> place, SharedRowsOptions options, Source source)
    : place_(std::move(place)), options_(options), source_(std::move(source)) {
  const BlockedSignals none;
  try {
    thread_ = std::jthread([this](const std::stop_token& ends) { run(ends); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::kIo, cat("a thread that shares rows: ", error.what()));
  }
}

SharedRows::~SharedRows() = default;

std::string SharedRows::name_of(const std::string& key) const {
  std::string name = cat(key, "-", to_string(to_dtype(options_.dtype)));
  std::ranges::replace_if(
      name, [](char c) { return c == ' ' || c == '+'; }, '-');  // of some units of an item
  return name;
}

std::vector<std::optional<RowEntry>> SharedRows::find(std::span<const std::string> keys) {
  struct Search {
    std::vector<std::string> names;
    std::vector<std::optional<RowEntry>> found;
  };
  const auto search = std::make_shared<Search>();
  for (const std::string& key : keys) search->names.push_back(name_of(key));
  const auto most = options_.find_time * std::ssize(keys);
  const bool is_done = ask(most, [search, width = options_.width](RowPlace& place) {
    std::vector<std::optional<RowBytes>> files = place.get(search->names);
    std::vector<std::optional<RowEntry>> found(files.size());
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (files[i]) found[i] = decode_entry(search->names[i], *std::move(files[i]));
      if (found[i] && found[i]->facts.width != width) found[i].reset();
    }
    search->found = std::move(found);
  });
  std::vector<std::optional<RowEntry>> found(keys.size());
  if (is_done) found = std::move(search->found);
  const std::lock_guard lock(mutex_);
  const auto hits = std::ranges::count_if(found, [](const auto& entry) { return !!entry; });
  stats_.hits += hits;
  (is_done ? stats_.misses : stats_.skipped) += std::ssize(found) - hits;
  return found;
}

void SharedRows::keep(const std::string& key) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() == kMostWaiting) {
      ++stats_.not_stored;
      return;
    }
    waiting_.push_back(key);
  }
  changed_.notify_all();
}

void SharedRows::wait_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && !is_writing_; });
}

void SharedRows::run(const std::stop_token& ends) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, ends, [this] { return !waiting_.empty(); })) {
    if (ends.stop_requested()) return;
    const std::string key = std::move(waiting_.front());
    waiting_.pop_front();
    is_writing_ = true;
    lock.unlock();
    const bool is_stored = write(key, ends);
    lock.lock();
    is_writing_ = false;
    ++(is_stored ? stats_.stored : stats_.not_stored);
    changed_.notify_all();
  }
}

bool SharedRows::write(const std::string& key, const std::stop_token& ends) try {
  if (is_passed_over(false)) return false;
  const std::optional<Embedding> item = source_(key);
  if (!item) return false;
  struct Gift {
    std::string name;
    std::vector<std::byte> bytes;
    bool is_kept = true;
  };
  const auto gift = std::make_shared<Gift>();
  gift->name = name_of(key);
  gift->bytes = encode_entry(gift->name, *item);
  if (gift->bytes.size() > kMaxEntryBytes) return false;
  const auto give = [gift](RowPlace& place) {
    try {
      place.put(gift->name, gift->bytes);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable) throw;
      gift->is_kept = false;  // it answers, and so may be read
    }
  };
  const bool is_done = ask(options_.keep_time, give, ends);
  return is_done && gift->is_kept;
} catch (const std::exception& error) {  // of the source, or there is no memory
  say(LogLevel::kWarning, "shared_rows.not_stored", error.what());
  return false;
}

bool SharedRows::ask(milliseconds most, std::function<void(RowPlace&)> work,
                     const std::stop_token& ends) {
  const auto errand = std::make_shared<Errand>();
  if (is_passed_over(true)) return false;
  ++*running_;
  try {
    const BlockedSignals none;
    std::thread([errand, place = place_, running = running_, work = std::move(work)] {
      std::exception_ptr problem;
      try {
        work(*place);
      } catch (...) {
        problem = std::current_exception();
      }
      --*running;
      errand->end(std::move(problem));
    }).detach();
  } catch (const std::exception& error) {  // there is no thread to be had, or no memory
    --*running_;
    fail(error.what());
    return false;
  }
  const std::optional<std::exception_ptr> problem = errand->wait(most, ends);
  if (problem && *problem == nullptr) {
    succeed();
    return true;
  }
  if (ends.stop_requested()) return false;
  fail(problem ? text_of(*problem) : cat("no answer within ", most.count(), " ms"));
  return false;
}

bool SharedRows::is_passed_over(bool is_to_try) {
  const std::lock_guard lock(mutex_);
  if (pause_ == milliseconds(0)) return false;
  if (is_tried_ || Clock::now() < ask_from_ || *running_ > 0) return true;
  is_tried_ = is_to_try;
  return false;
}

void SharedRows::say(LogLevel level, const char* event, std::string_view why) const noexcept try {
  log_to(options_.log, level, cat(event, " reason=\"", why, "\""));
} catch (const std::bad_alloc&) {
  // There is no memory for a line of the log.
}

void SharedRows::fail(std::string_view why) {
  {
    const std::lock_guard lock(mutex_);
    const bool is_first = pause_ == milliseconds(0);
    if (!is_first && !is_tried_) return;  // it was on its way when another one failed
    pause_ = is_first ? options_.shortest_pause : std::min(2 * pause_, options_.longest_pause);
    ask_from_ = Clock::now() + pause_;
    is_tried_ = false;
    if (!is_first) return;
  }
  say(LogLevel::kWarning, "shared_rows.away", why);
}

void SharedRows::succeed() {
  {
    const std::lock_guard lock(mutex_);
    is_tried_ = false;
    if (std::exchange(pause_, milliseconds(0)) == milliseconds(0)) return;
  }
  log_to(options_.log, LogLevel::kInfo, "shared_rows.back");
}

SharedRowsStats SharedRows::stats() const {
  const std::lock_guard lock(mutex_);
  SharedRowsStats stats = stats_;
  stats.is_asked = pause_ == milliseconds(0);
  return stats;
}

}  // namespace fovea
