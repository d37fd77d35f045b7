// Rows as files that several processes write, read and remove at the same time.
#include "rows/shared/folder_place.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/check.h"
#include "core/file.h"
#include "fovea/atomic_file.h"
#include "fovea/version.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr std::time_t kMarkSeconds = 600;       // between two marks of a file as used
constexpr std::time_t kLeftoverSeconds = 3600;  // after which what was not finished is nobody's
constexpr std::int64_t kPartsUnseen = 64;
constexpr std::int64_t kPartsFreed = 8;

/// A file of the folder.
struct Kept {
  std::string path;
  std::int64_t bytes = 0;
  std::time_t used = 0;
  bool is_unfinished = false;
};

/// Calls visit(path) for every entry of a folder; none where it goes meanwhile.
template <class Visit>
void for_each_path(const std::string& folder, Visit&& visit) {
  try {
    for (const std::string& name : list_directory(folder)) visit(cat(folder, "/", name), name);
  } catch (const Error&) {  // NOLINT: another process has removed it
  }
}

/// All files below a folder, two folders deep.
std::vector<Kept> all_files(const std::string& folder) {
  std::vector<Kept> files;
  for_each_path(folder, [&](const std::string& version, const std::string&) {
    for_each_path(version, [&](const std::string& part, const std::string&) {
      for_each_path(part, [&](std::string path, const std::string& name) {
        struct stat state {};
        if (lstat(path.c_str(), &state) != 0 || !S_ISREG(state.st_mode)) return;
        files.push_back({std::move(path), state.st_size, state.st_mtime, name.starts_with('.')});
      });
    });
  });
  return files;
}

/// The bytes of a file, and a mark that it is used. Nothing if there is none, or it is too large.
std::optional<RowBytes> read_marked(const std::string& path) try {
  const InputFile file(path);
  if (file.size_bytes() > kMaxEntryBytes) return std::nullopt;
  RowBytes bytes(file.size_bytes());
  file.read_at(0, {bytes.data(), bytes.size()});
  struct stat state {};
  if (fstat(file.descriptor(), &state) == 0 && state.st_mtime + kMarkSeconds < std::time(nullptr)) {
    (void)futimens(file.descriptor(), nullptr);  // who may not mark it may still read it
  }
  return bytes;
} catch (const Error& error) {
  if (error.code() == ErrorCode::kNotFound) return std::nullopt;
  throw;
}

}  // namespace

FolderPlace::FolderPlace(std::string folder, std::int64_t max_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes) {
  FOVEA_CHECK(max_bytes_ > 0, kInvalidArgument, "shared_rows_bytes: expected at least 1 byte, got ",
              max_bytes_);
  FOVEA_CHECK(directory_exists(folder_), kNotFound, folder_,
              ": no such folder for shared rows (--shared-rows)");
}

std::string FolderPlace::path_of(const std::string& name) const {
  return cat(folder_, "/", version(), "/", name.substr(0, 2), "/", name);
}

std::vector<std::optional<RowBytes>> FolderPlace::get(std::span<const std::string> names) {
  std::vector<std::optional<RowBytes>> found;
  found.reserve(names.size());
  for (const std::string& name : names) found.push_back(read_marked(path_of(name)));
  return found;
}

void FolderPlace::put(const std::string& name, std::span<const std::byte> bytes) {
  FOVEA_CHECK(std::cmp_less_equal(bytes.size(), max_bytes_), kUnavailable, folder_, ": ",
              bytes.size(), " bytes are more than all shared rows may have, ", max_bytes_);
  const std::string path = path_of(name);
  std::error_code failure;
  fs::create_directories(fs::path(path).parent_path(), failure);
  FOVEA_CHECK(!failure, kIo, path, ": cannot make its folder: ", failure.message());
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
  make_room(static_cast<std::int64_t>(bytes.size()));
}

void FolderPlace::make_room(std::int64_t written) {
  const std::lock_guard lock(mutex_);
  unseen_ += written;
  const std::int64_t part = max_bytes_ / kPartsUnseen;
  if (has_seen_ && unseen_ <= part) return;
  const std::string path = cat(folder_, "/.lock");
  const FileDescriptor one(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  FOVEA_CHECK(one.is_open(), kIo, path, ": cannot be opened: ", system_reason());
  // While another one is at it, the next file asks, unless too much has been written meanwhile.
  // Where a file system has no locks, several remove files at a time, which does no harm.
  if (flock(one.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    if (unseen_ <= 2 * part) return;
    (void)flock(one.get(), LOCK_EX);
  }
  remove_unused();
  has_seen_ = true;
  unseen_ = 0;
}

void FolderPlace::remove_unused() const {
  std::vector<Kept> files = all_files(folder_);
  std::int64_t total = 0;
  for (const Kept& file : files) total += file.bytes;
  const std::int64_t wanted = total > max_bytes_ ? max_bytes_ - max_bytes_ / kPartsFreed : total;
  std::ranges::sort(files, {}, &Kept::used);
  const std::time_t now = std::time(nullptr);
  for (const Kept& file : files) {
    const bool is_leftover = file.is_unfinished && file.used + kLeftoverSeconds < now;
    if (!is_leftover && (total <= wanted || file.is_unfinished)) continue;
    (void)unlink(file.path.c_str());  // which another process may have done
    total -= file.bytes;
  }
}

}  // namespace fovea
