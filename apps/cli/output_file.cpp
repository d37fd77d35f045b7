// Text files in and out. Writing goes to a temporary name in the same directory, then renames, so
// that an interrupted run leaves either the old file or the new one.
#include "output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "errors.h"
#include "fovea/error.h"

namespace fovea::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const std::string& what, int error_number) {
  throw Error(ErrorCode::kIo, path + ": " + what + ": " + std::strerror(error_number));
}

/// Writes everything and flushes it to disk. Returns 0 or the system's error number.
int write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(descriptor) == 0 ? 0 : errno;
}

}  // namespace

void check_output_path(const std::string& path) {
  const fs::path folder = fs::absolute(path).parent_path();
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw Error(ErrorCode::kIo, path + ": the directory " + folder.string() + " does not exist");
  }
  if (::access(folder.c_str(), W_OK) != 0) fail(path, "cannot write into the directory", errno);
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    throw Error(ErrorCode::kIo, path + ": exists and is not a regular file");
  }
}

void check_output_paths(std::initializer_list<std::string> paths) {
  std::set<fs::path> files;
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    check_output_path(path);
    if (!files.insert(fs::weakly_canonical(path)).second) {
      throw UsageError(path + ": expected a file for each output, got one for two of them");
    }
  }
}

PendingFile::PendingFile(std::string path, std::string_view content)
    : path_(std::move(path)), temporary_(path_ + "." + std::to_string(::getpid()) + ".tmp") {
  constexpr mode_t kReadWriteForAll = 0666;  // less the umask, as any new file
  const int descriptor =
      ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kReadWriteForAll);
  if (descriptor < 0) fail(temporary_, "cannot create", errno);
  const int write_error = write_all(descriptor, content);
  const int close_error = ::close(descriptor) == 0 ? 0 : errno;
  if (write_error != 0 || close_error != 0) {
    std::remove(temporary_.c_str());
    fail(path_, "cannot write", write_error != 0 ? write_error : close_error);
  }
}

PendingFile::PendingFile(PendingFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::move(other.temporary_)) {
  other.temporary_.clear();
}

PendingFile::~PendingFile() {
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

void PendingFile::commit() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail(path_, "cannot rename to", errno);
  temporary_.clear();
}

void write_text_file(const std::string& path, std::string_view content) {
  PendingFile file(path, content);
  file.commit();
}

std::string read_text_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw Error(ErrorCode::kNotFound, path + ": cannot open the file");
  std::ostringstream content;
  content << stream.rdbuf();
  if (stream.bad()) throw Error(ErrorCode::kIo, path + ": cannot read the file");
  return content.str();
}

}  // namespace fovea::cli
