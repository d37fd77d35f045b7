// The manifest as a file: its lock, its end.
#include "shards/manifest_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include "fovea/error.h"

namespace fovea::cli {

ManifestFile::ManifestFile(std::string path) : path_(std::move(path)) {
  constexpr mode_t kFileMode = 0666;  // before the umask, as every shell creates files
  file_.reset(::open(path_.c_str(),
                     O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kFileMode));
  if (!file_.is_open()) fail("open");
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::kIo, path_ + ": expected a regular file");
  }
  const bool locked = ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
  if (!locked && errno != EWOULDBLOCK) fail("lock");
  // It may have grown meanwhile, or be one that its process has removed.
  if (::fstat(file_.get(), &status) != 0) fail("look at");
  if (!locked || status.st_nlink == 0) {
    throw Error(ErrorCode::kUnavailable,
                path_ + ": another process encodes this shard into this folder");
  }
  bytes_ = status.st_size;
}

ManifestFile::~ManifestFile() {
  if (bytes_ == 0) ::unlink(path_.c_str());  // before the lock goes
}

void ManifestFile::truncate(std::int64_t bytes) {
  if (::ftruncate(file_.get(), bytes) != 0 || ::fsync(file_.get()) != 0) fail("cut");
  bytes_ = bytes;
}

void ManifestFile::append(std::string_view lines) {
  try {
    if (!write_all(file_.get(), std::as_bytes(std::span(lines)))) fail("write");
    if (::fsync(file_.get()) != 0) fail("flush");
  } catch (...) {
    (void)!::ftruncate(file_.get(), bytes_);  // the reader drops what stays
    throw;
  }
  bytes_ += static_cast<std::int64_t>(lines.size());
}

void ManifestFile::fail(const char* action) const {
  throw Error(ErrorCode::kIo, path_ + ": cannot " + action +
                                  " the manifest: " + std::generic_category().message(errno));
}

}  // namespace fovea::cli
