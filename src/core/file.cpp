// Reading and writing whole files through the system's calls: the standard streams do not say why
// something failed, cannot refuse an existing name and do not flush to the disk.
#include "core/file.h"

#include "core/check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

namespace fovea {

namespace {

/// Permissions before the umask, as every shell creates files.
constexpr mode_t kFileMode = 0666;

/// Temporary names that are tried; more can only be taken by leftovers of killed processes.
constexpr int kMaxTemporaryNames = 1000;

std::string system_reason() { return std::generic_category().message(errno); }

/// Creates a file that did not exist and gives its name. The name does not contain the target's,
/// which may already have the greatest length allowed.
int create_temporary(const std::string& target, std::string& name) {
  const std::filesystem::path directory = std::filesystem::path(target).parent_path();
  for (int i = 0; i < kMaxTemporaryNames; ++i) {
    name = (directory / cat(".fovea-", getpid(), "-", i, ".tmp")).string();
    const int descriptor = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode);
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
  }
  return -1;
}

}  // namespace

bool path_exists(const std::string& path) noexcept {
  struct stat status {};
  return stat(path.c_str(), &status) == 0;
}

bool directory_exists(const std::string& path) noexcept {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::vector<std::string> list_directory(const std::string& path) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  FOVEA_CHECK(!error, kIo, path, ": cannot list: ", error.message());
  std::ranges::sort(names);
  return names;
}

InputFile::InputFile(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  FOVEA_CHECK(descriptor_ >= 0 || (errno != ENOENT && errno != ENOTDIR), kNotFound, path,
              ": no such file");
  FOVEA_CHECK(descriptor_ >= 0, kIo, path, ": cannot open: ", system_reason());
  struct stat status {};
  const bool known = fstat(descriptor_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    const std::string reason = known ? "not a regular file" : "cannot stat: " + system_reason();
    close(descriptor_);
    throw Error(ErrorCode::kIo, path + ": " + reason);
  }
  size_bytes_ = static_cast<std::size_t>(status.st_size);
}

InputFile::~InputFile() { close(descriptor_); }

std::vector<std::uint8_t> read_file(const std::string& path, std::size_t max_bytes) {
  const InputFile file(path);
  FOVEA_CHECK(file.size_bytes() <= max_bytes, kInvalidArgument, path, ": file has ",
              file.size_bytes(), " bytes, at most ", max_bytes, " are read");
  std::vector<std::uint8_t> bytes(file.size_bytes());
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::read(file.descriptor(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    FOVEA_CHECK(count >= 0, kIo, path, ": cannot read: ", system_reason());
    FOVEA_CHECK(count > 0, kIo, path, ": file ends after ", done, " of ", bytes.size(), " bytes");
    done += static_cast<std::size_t>(count);
  }
  return bytes;
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  descriptor_ = create_temporary(path_, temporary_);
  if (descriptor_ < 0) fail("create a temporary file beside it");
}

AtomicFile::~AtomicFile() {
  close_file();
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  FOVEA_CHECK(descriptor_ >= 0, kInternal, path_, ": written after commit");
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("write");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void AtomicFile::commit() {
  FOVEA_CHECK(descriptor_ >= 0, kInternal, path_, ": committed twice");
  if (fsync(descriptor_) != 0) fail("flush");
  if (close(std::exchange(descriptor_, -1)) != 0) fail("close");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename the temporary file");
  temporary_.clear();
}

void AtomicFile::fail(const char* action) const {
  throw Error(ErrorCode::kIo, cat(path_, ": cannot ", action, ": ", system_reason()));
}

void AtomicFile::close_file() noexcept {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

void replace_file(const std::string& path, std::string_view text) {
  std::error_code told_by_the_file;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), told_by_the_file);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace fovea
