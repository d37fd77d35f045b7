#include "serve/media/local_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include "fovea/error.h"
#include "serve/api_error.h"
#include "serve/text/url.h"

namespace fovea::serve {
namespace {

namespace fs = std::filesystem;

/// O_NONBLOCK: a pipe must not make us wait for its other end.
constexpr int kFileFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

bool is_beneath(const std::string& path) {
  const fs::path parts(path);
  return !path.empty() && parts.is_relative() && path.find('\0') == std::string::npos &&
         std::ranges::find(parts, "..") == parts.end();
}

/// The descriptor, if it is one of a regular file.
FileDescriptor regular(FileDescriptor file) {
  struct stat status {};
  const bool fits = file.is_open() && fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
  return fits ? std::move(file) : FileDescriptor();
}

/// The absolute path in "file:///path", "file:/path" or "file://localhost/path".
std::optional<std::string> path_of(std::string_view url) {
  url.remove_prefix(std::string_view("file:").size());
  if (url.starts_with("//")) {
    url.remove_prefix(2);
    constexpr std::string_view kLocalhost = "localhost/";
    if (begins_with(url, kLocalhost)) url.remove_prefix(kLocalhost.size() - 1);
  }
  if (!url.starts_with('/')) return std::nullopt;
  return percent_decoded(url);
}

std::string without_last_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

/// Reads to the end of the file or to `size` bytes; fewer if reading fails.
std::vector<std::uint8_t> read_up_to(const FileDescriptor& file, std::size_t size) {
  std::vector<std::uint8_t> bytes;
  std::size_t got = 0;
  while (got < size) {
    constexpr std::size_t kStep = std::size_t{1} << 20;
    bytes.resize(std::min(size, got + kStep));
    const ssize_t count = ::read(file.get(), bytes.data() + got, bytes.size() - got);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    got += static_cast<std::size_t>(count);
  }
  bytes.resize(got);
  return bytes;
}

}  // namespace

FileDescriptor open_beneath(const FileDescriptor& folder, const std::string& path) {
  if (!is_beneath(path)) return FileDescriptor();
  open_how how{};
  how.flags = kFileFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const long number = syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof(how));
  // Kernels before 5.6 do not know it; sandboxes forbid what they do not know.
  if (number < 0 && (errno == ENOSYS || errno == EPERM)) return open_by_components(folder, path);
  return regular(FileDescriptor(static_cast<int>(number)));
}

FileDescriptor open_by_components(const FileDescriptor& folder, const std::string& path) {
  if (!is_beneath(path)) return FileDescriptor();
  const fs::path parts(path);
  FileDescriptor at;
  for (const fs::path& part : parts.parent_path()) {
    const int above = at.is_open() ? at.get() : folder.get();
    at = FileDescriptor(openat(above, part.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!at.is_open()) return at;
  }
  const int above = at.is_open() ? at.get() : folder.get();
  return regular(FileDescriptor(openat(above, parts.filename().c_str(), kFileFlags)));
}

LocalFiles::LocalFiles(const std::string& folder) {
  if (folder.empty()) return;
  std::error_code error;
  const std::string real = fs::canonical(folder, error).string();
  if (!error) folder_ = FileDescriptor(open(real.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder_.is_open()) {
    throw Error(ErrorCode::kInvalidArgument, folder + ": expected a folder for local media");
  }
  const fs::path given = fs::absolute(folder).lexically_normal();
  for (const std::string& prefix : {real, given.string()}) {
    prefixes_.push_back(without_last_slash(prefix) + (prefix == "/" ? "" : "/"));
  }
}

std::vector<std::uint8_t> LocalFiles::read(std::string_view url, std::size_t max_bytes,
                                           const std::string& param) const {
  if (!folder_.is_open()) {
    throw ApiError(403, "local_media_forbidden",
                   "this server reads no local files (--allowed-local-media-path)", param);
  }
  const std::optional<std::string> path = path_of(url);
  for (const std::string& prefix : prefixes_) {
    if (!path || !path->starts_with(prefix)) continue;
    const FileDescriptor file = open_beneath(folder_, path->substr(prefix.size()));
    if (file.is_open()) return read_up_to(file, max_bytes + 1);
  }
  throw ApiError(403, "local_media_forbidden",
                 "expected a file below the folder that this server reads from "
                 "(--allowed-local-media-path), a regular one that it may read",
                 param);
}

}  // namespace fovea::serve
