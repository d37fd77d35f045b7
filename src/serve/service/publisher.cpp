#include "serve/service/publisher.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "fovea/row_formats.h"
#include "fovea/text.h"
#include "serve/api_error.h"
#include "serve/service/temporary_file.h"

namespace fovea::serve {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFileName = "encoder_cache.safetensors";
constexpr std::size_t kMaxKeyBytes = 255;

void write_rows(const Embedding& item, const ByteSink& sink) {
  const StoredTensor rows = stored_rows(item, "ec_cache");
  write_safetensors(std::span(&rows, 1), {{"format", "pt"}}, sink);
}

std::int64_t file_size_of(const Embedding& item) {
  std::size_t size = 0;
  write_rows(item, [&](std::span<const std::byte> bytes) { size += bytes.size(); });
  return static_cast<std::int64_t>(size);
}

/// How long ago a file was written.
Clock::duration age_of(const fs::directory_entry& file) {
  const auto age = fs::file_time_type::clock::now() - file.last_write_time();
  return std::max(Clock::duration::zero(), std::chrono::duration_cast<Clock::duration>(age));
}

/// A file that was found at the start.
struct Found {
  std::string key;
  std::int64_t bytes = 0;
  Clock::duration age{};
};

/// The contents of the folder of a key; removes what was left unfinished longer ago than `max_age`.
/// What cannot be read, for example because another server removes it, is none of ours.
void scan_folder(const fs::directory_entry& folder, Clock::duration max_age,
                 std::vector<Found>& found) try {
  if (!folder.is_directory()) return;
  for (const fs::directory_entry& file : fs::directory_iterator(folder.path())) {
    if (!file.is_regular_file()) continue;
    const std::string name = file.path().filename().string();
    if (name == kFileName) {
      found.push_back({folder.path().filename().string(),
                       static_cast<std::int64_t>(file.file_size()), age_of(file)});
    } else if (is_temporary_name(name) && age_of(file) >= max_age) {
      std::error_code ignored;
      fs::remove(file.path(), ignored);
    }
  }
} catch (const fs::filesystem_error&) {  // NOLINT: said above
}

}  // namespace

void check_key(std::string_view key, const std::string& param) {
  const auto is_control = [](char32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
  };
  const bool is_name = !key.empty() && key.size() <= kMaxKeyBytes && key != "." && key != ".." &&
                       key.find('/') == key.npos;
  if (is_name && replace_characters(key, "", is_control) == key) return;
  refuse(param,
         "expected 1 to " + std::to_string(kMaxKeyBytes) +
             " bytes of UTF-8 without '/' and control characters, and neither \".\" nor "
             "\"..\", got \"" +
             shortened(key, 60) + "\"",
         "invalid_uuid");
}

Publisher::Publisher(PublisherOptions options)
    : options_(std::move(options)), files_(options_.max_bytes) {
  if (!fs::is_directory(options_.directory)) {
    throw Error(ErrorCode::kNotFound, options_.directory + ": no such folder");
  }
  try {
    scan();
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorCode::kIo, options_.directory + ": " + error.code().message());
  }
}

void Publisher::scan() {
  std::vector<Found> found;
  for (const fs::directory_entry& folder : fs::directory_iterator(options_.directory)) {
    scan_folder(folder, options_.min_age, found);
  }
  std::ranges::stable_sort(found, std::ranges::greater{}, &Found::age);
  const Clock::time_point now = options_.now();
  for (const Found& file : found) files_.put(file.key, now - file.age, file.bytes);
}

std::string Publisher::folder_of(std::string_view key) const {
  return options_.directory + "/" + std::string(key);
}

/// Keeps room for a file. @return the bytes promised, beyond those of the file that it replaces.
std::int64_t Publisher::promise_room(const std::string& key, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const Files::Entry* const old = files_.find(key);
  const std::int64_t promise = bytes - (old != nullptr && old->pins == 0 ? old->cost : 0);
  prune(promised_ + promise - files_.free(), key);
  if (old == nullptr) files_.put(key, {}, 0);
  files_.pin(key);
  promised_ += promise;
  return promise;
}

/// Removes files, published longest ago first, until so many bytes are free.
void Publisher::prune(std::int64_t needed, const std::string& except) {
  const Clock::time_point newest = options_.now() - options_.min_age;
  std::vector<std::string> going;
  std::int64_t freed = 0;
  for (const Files::Entry& file : files_.unpinned()) {
    if (freed >= needed) break;
    if (file.value > newest || file.key == except) continue;
    going.push_back(file.key);
    freed += file.cost;
  }
  if (freed < needed) {
    throw ApiError(507, "ec_storage_full",
                   "the folder for rows holds " + std::to_string(files_.cost()) + " of " +
                       std::to_string(options_.max_bytes) +
                       " bytes, and no file in it is old enough to go (--ec-max-bytes, "
                       "--ec-min-age)");
  }
  for (const std::string& key : going) {
    // Another process may have removed them, or may be writing there.
    unlink((folder_of(key) + "/" + kFileName).c_str());
    rmdir(folder_of(key).c_str());
    files_.erase(key);
    ++pruned_;
  }
}

/// A writer of the key has ended, well or not.
void Publisher::leave(const std::string& key, std::int64_t promised) {
  promised_ -= promised;
  const Files::Entry* const file = files_.unpin(key);
  if (file->pins > 0 || file->cost > 0) return;
  rmdir(folder_of(key).c_str());  // unless another process has put something there
  files_.erase(key);
}

void Publisher::publish(const std::string& key, const Embedding& item) {
  check_key(key, "uuid");
  const std::int64_t bytes = file_size_of(item);
  const std::int64_t promised = promise_room(key, bytes);
  try {
    TemporaryFile file(folder_of(key));
    write_rows(item, [&](std::span<const std::byte> part) { file.write(part); });
    const std::lock_guard lock(mutex_);
    file.move_to(folder_of(key) + "/" + kFileName);
    files_.put(key, options_.now(), bytes);
    ++published_;
    leave(key, promised);
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    leave(key, promised);
    throw ApiError(500, "ec_publish_failed",
                   std::string("the rows cannot be published: ") + error.what());
  }
}

PublisherStats Publisher::stats() const {
  const std::lock_guard lock(mutex_);
  const auto unwritten = std::ranges::count(files_.pinned(), 0, &Files::Entry::cost);
  return {.entries = static_cast<std::int64_t>(files_.size()) - unwritten,
          .bytes = files_.cost(),
          .max_bytes = options_.max_bytes,
          .published = published_,
          .pruned = pruned_};
}

}  // namespace fovea::serve
