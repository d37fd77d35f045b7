// Files that appear complete or not at all, through the system's calls: the standard streams do not
// say why something failed, cannot refuse an existing name and do not flush to the disk.
#include "fovea/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/boundary.h"
#include "core/check.h"
#include "core/file.h"
#include "fovea/text.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

/// Permissions before the umask, as every shell creates files.
constexpr mode_t kFileMode = 0666;

/// Temporary names that are tried; more can only be taken by leftovers of killed processes.
constexpr int kMaxTemporaryNames = 1000;

/// Links that are followed: as many as the system follows.
constexpr int kMaxLinks = 40;

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

/// The end of a chain of links, whether it exists or not. Entries of /proc look like links, but
/// stand for open files, whose names mean nothing.
fs::path follow_links(const std::string& path) {
  fs::path file = path;
  std::error_code failure;
  for (int i = 0; i < kMaxLinks; ++i) {
    if (!fs::is_symlink(file, failure)) return file;
    const fs::path folder = fs::canonical(folder_of(file), failure);
    FOVEA_CHECK(!folder.string().starts_with("/proc/"), kIo, path,
                ": not a regular file, the link leads to ", file.string());
    const fs::path next = fs::read_symlink(file, failure);
    FOVEA_CHECK(!failure, kIo, path, ": cannot follow the link: ", failure.message());
    file = folder / next;  // just `next` if that is absolute
  }
  FOVEA_CHECK(false, kIo, path, ": more than ", kMaxLinks, " links, one after the other");
}

constexpr std::string_view kTemporaryStart = ".fovea-";
constexpr std::string_view kTemporaryEnd = ".tmp";

/// The process that a temporary name belongs to, absent for other names.
std::optional<pid_t> owner_of(std::string_view name) {
  if (!name.starts_with(kTemporaryStart) || !name.ends_with(kTemporaryEnd)) return std::nullopt;
  pid_t owner = 0;
  const char* const begin = name.data() + kTemporaryStart.size();
  const auto [end, failure] = std::from_chars(begin, name.data() + name.size(), owner);
  if (failure != std::errc{} || owner <= 0 || *end != '-') return std::nullopt;
  return owner;
}

/// Removes a temporary file whose process was killed. Every writer holds a lock on its file, so
/// that one on another machine or in another container, whose number means nothing here, keeps it.
void remove_leftover(const fs::path& file) {
  const FileDescriptor left(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!left.is_open()) return;
  struct stat status {};
  const bool ours = fstat(left.get(), &status) == 0 && S_ISREG(status.st_mode) &&
                    status.st_uid == geteuid() && status.st_nlink == 1;
  if (ours && flock(left.get(), LOCK_EX | LOCK_NB) == 0) unlink(file.c_str());
}

/// Calls `make`, which reports failure through errno, with names beside the target until one is
/// free, and stores that name in `name`. The name does not contain the target's, which may already
/// have the greatest length allowed.
template <class Make>
int make_temporary(const std::string& target, std::string& name, Make make) {
  remove_temporaries(folder_of(target).string());
  for (int i = 0; i < kMaxTemporaryNames; ++i) {
    std::string candidate =
        (folder_of(target) / cat(kTemporaryStart, getpid(), "-", i, kTemporaryEnd)).string();
    const int result = make(candidate.c_str());
    if (result >= 0) name = std::move(candidate);
    if (result >= 0 || errno != EEXIST) return result;
  }
  return -1;
}

/// The name of an open file by which it can be linked.
std::string name_in_proc(int descriptor) { return cat("/proc/self/fd/", descriptor); }

/// Opens a file without a name, or returns -1 where the system cannot do that or cannot name it
/// later.
int open_unnamed(const std::string& target) {
  FileDescriptor file(open(folder_of(target).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, kFileMode));
  return file.is_open() && path_exists(name_in_proc(file.get())) ? file.release() : -1;
}

/// Makes a new name last through a loss of power, where the file system can do that.
void flush_folder(const fs::path& folder) noexcept {
  const FileDescriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.is_open()) (void)fsync(opened.get());
}

}  // namespace

std::string output_target(const std::string& path) try {
  FOVEA_CHECK(!path.empty(), kIo, "cannot write to a file without a name");
  FOVEA_CHECK(path.find('\0') == path.npos, kIo, printable(path),
              ": no file has a null byte in its name");
  const fs::path target = follow_links(path);
  struct stat status {};
  const bool exists = stat(target.c_str(), &status) == 0;
  FOVEA_CHECK(exists || errno == ENOENT || errno == ENOTDIR, kIo, path,
              ": cannot write: ", system_reason());
  FOVEA_CHECK(!exists || S_ISREG(status.st_mode), kIo, path,
              ": not a regular file, and only those are replaced");
  const std::string folder = folder_of(target).string();
  FOVEA_CHECK(directory_exists(folder), kIo, path, ": the directory ", folder, " does not exist");
  FOVEA_CHECK(access(folder.c_str(), W_OK) == 0, kIo, path, ": cannot write into the directory ",
              folder, ": ", system_reason());
  return target.string();
} catch (...) {
  rethrow_as_error();
}

void remove_temporaries(const std::string& folder) noexcept {
  try {
    for_each_entry(folder, [&](std::string_view name) {
      const std::optional<pid_t> owner = owner_of(name);
      if (owner && kill(*owner, 0) != 0 && errno == ESRCH) remove_leftover(fs::path(folder) / name);
    });
  } catch (...) {  // NOLINT: files that stay do no harm
  }
}

AtomicFile::AtomicFile(std::string path) try
    : path_(std::move(path)), target_(output_target(path_)), descriptor_(open_unnamed(target_)) {
  if (descriptor_ >= 0) return;
  descriptor_ = make_temporary(target_, temporary_, [](const char* name) {
    const int descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode);
    if (descriptor >= 0) (void)flock(descriptor, LOCK_EX | LOCK_NB);
    return descriptor;
  });
  if (descriptor_ < 0) fail("create a temporary file beside it");
} catch (...) {
  rethrow_as_error();
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) try {
  FOVEA_CHECK(descriptor_ >= 0, kInternal, path_, ": written after commit");
  if (!write_all(descriptor_, bytes)) fail("write");
} catch (...) {
  rethrow_as_error();
}

void AtomicFile::flush() try {
  if (fsync(descriptor_) != 0) fail("flush");
} catch (...) {
  rethrow_as_error();
}

void AtomicFile::commit() try {
  FOVEA_CHECK(descriptor_ >= 0, kInternal, path_, ": committed twice");
  const fs::path folder = folder_of(target_);
  flush();
  give_name();
  flush_folder(folder);
  if (close(std::exchange(descriptor_, -1)) != 0) fail("close");
} catch (...) {
  rethrow_as_error();
}

/// A file without a name cannot take one that is in use, a file with a name can: only where an
/// older file is replaced there are two steps, between which a killed process leaves a temporary
/// file.
void AtomicFile::give_name() {
  const std::string unnamed = name_in_proc(descriptor_);
  const auto link_as = [&](const char* name) {
    return linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW);
  };
  if (temporary_.empty()) {
    if (link_as(target_.c_str()) == 0) return;
    (void)flock(descriptor_, LOCK_EX | LOCK_NB);
    if (make_temporary(target_, temporary_, link_as) < 0) fail("name the temporary file");
  }
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail("rename the temporary file");
  temporary_.clear();
}

void AtomicFile::fail(const char* action) const {
  throw Error(ErrorCode::kIo, cat(path_, ": cannot ", action, ": ", system_reason()));
}

}  // namespace fovea
