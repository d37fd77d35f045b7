#include "serve/service/temporary_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "fovea/error.h"

namespace fovea::serve {
namespace {

constexpr std::string_view kStart = ".fovea-";
constexpr std::string_view kEnd = ".tmp";
constexpr mode_t kFileMode = 0644;
constexpr mode_t kFolderMode = 0755;
/// Names that others have taken, and folders that others remove between two calls.
constexpr int kTries = 100;

[[noreturn]] void fail(std::string_view action) {
  const std::string reason = std::generic_category().message(errno);
  throw Error(ErrorCode::kIo, std::string(action) + ": " + reason);
}

std::string next_name(const std::string& folder) {
  static std::atomic<std::uint64_t> next = 0;
  return folder + "/" + std::string(kStart) + std::to_string(getpid()) + "-" +
         std::to_string(next++) + std::string(kEnd);
}

void make_folder(const std::string& folder) {
  if (mkdir(folder.c_str(), kFolderMode) == 0) {
    if (chmod(folder.c_str(), kFolderMode) != 0 && errno != ENOENT) fail("cannot open the folder");
  } else if (errno != EEXIST) {
    fail("cannot make a folder");
  }
}

}  // namespace

TemporaryFile::TemporaryFile(const std::string& folder) {
  for (int i = 0; i < kTries && !file_.is_open(); ++i) {
    make_folder(folder);
    path_ = next_name(folder);
    file_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode));
    if (!file_.is_open() && errno != EEXIST && errno != ENOENT) break;
  }
  if (!file_.is_open()) fail("cannot make a file");
  if (fchmod(file_.get(), kFileMode) != 0) {  // whatever the umask says
    const int reason = errno;
    unlink(path_.c_str());
    errno = reason;
    fail("cannot let others read a file");
  }
}

TemporaryFile::~TemporaryFile() {
  if (!path_.empty()) unlink(path_.c_str());
}

void TemporaryFile::write(std::span<const std::byte> bytes) {
  if (!write_all(file_.get(), bytes)) fail("cannot write");
}

void TemporaryFile::move_to(const std::string& path) {
  if (!file_.close()) fail("cannot write");
  if (std::rename(path_.c_str(), path.c_str()) != 0) fail("cannot rename a file");
  path_.clear();
}

bool is_temporary_name(const std::string& name) {
  return name.starts_with(kStart) && name.ends_with(kEnd);
}

}  // namespace fovea::serve
