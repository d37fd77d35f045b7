// The manifest as a file: its lock, its end.
#include "shards/manifest_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "fovea/error.h"

namespace fovea::cli {

ManifestFile::ManifestFile(std::string path) : path_(std::move(path)) {
  constexpr mode_t kFileMode = 0666;  // before the umask, as every shell creates files
  descriptor_ = ::open(
      path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kFileMode);
  if (descriptor_ < 0) fail("open");
  try {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
      throw Error(ErrorCode::kIo, path_ + ": expected a regular file");
    }
    const bool locked = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno != EWOULDBLOCK) fail("lock");
    // It may have grown meanwhile, or be one that its process has removed.
    if (::fstat(descriptor_, &status) != 0) fail("look at");
    if (!locked || status.st_nlink == 0) {
      throw Error(ErrorCode::kUnavailable,
                  path_ + ": another process encodes this shard into this folder");
    }
    bytes_ = status.st_size;
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

ManifestFile::~ManifestFile() {
  if (bytes_ == 0) ::unlink(path_.c_str());
  ::close(descriptor_);
}

void ManifestFile::truncate(std::int64_t bytes) {
  if (::ftruncate(descriptor_, bytes) != 0 || ::fsync(descriptor_) != 0) fail("cut");
  bytes_ = bytes;
}

void ManifestFile::append(std::string_view lines) {
  std::int64_t written = 0;
  try {
    while (!lines.empty()) {
      const ssize_t count = ::write(descriptor_, lines.data(), lines.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("write");
      lines.remove_prefix(static_cast<std::size_t>(count));
      written += count;
    }
    if (::fsync(descriptor_) != 0) fail("flush");
  } catch (...) {
    (void)!::ftruncate(descriptor_, bytes_);  // the reader drops what stays
    throw;
  }
  bytes_ += written;
}

void ManifestFile::fail(const char* action) const {
  throw Error(ErrorCode::kIo, path_ + ": cannot " + action +
                                  " the manifest: " + std::generic_category().message(errno));
}

}  // namespace fovea::cli
