// A file from the hub to the disk: continued where an earlier download has stopped, compared with
// its digest, and visible only when complete.
#include "hub/download.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <vector>

#include "core/check.h"
#include "core/file.h"
#include "core/file_descriptor.h"
#include "core/interrupt.h"
#include "core/stopwatch.h"
#include "hub/content_digest.h"
#include "hub/file_lock.h"

namespace fovea::hub {
namespace {

constexpr int kMaxFailures = 5;  // of connections that brought nothing new, one after the other
constexpr std::chrono::milliseconds kFirstPause{1000};
constexpr std::chrono::milliseconds kLook{50};
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
constexpr mode_t kMode = 0666;  // before the umask

void pause_for(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    check_interrupt_of_wait();
    std::this_thread::sleep_for(kLook);
  }
}

/// Adds the content of an open file from its beginning.
void add_content(int descriptor, const std::string& path, ContentDigest& digest) {
  std::vector<std::byte> piece(kPieceBytes);
  for (off_t offset = 0;;) {
    const ssize_t count = pread(descriptor, piece.data(), piece.size(), offset);
    FOVEA_CHECK(count >= 0, kIo, path, ": cannot read: ", system_reason());
    if (count == 0) return;
    digest.add(std::span(piece).first(static_cast<std::size_t>(count)));
    offset += count;
    check_interrupt();
  }
}

/// The file as it grows. What an earlier download left is its beginning.
class PartialFile {
 public:
  PartialFile(const std::string& path, const HubFile& file)
      : path_(path),
        file_(file),
        descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kMode)),
        digest_(file.etag, file.size) {
    FOVEA_CHECK(descriptor_.is_open(), kIo, path, ": cannot write: ", system_reason());
    struct stat status {};
    fstat(descriptor_.get(), &status);
    const bool is_beginning = S_ISREG(status.st_mode) &&
                              static_cast<std::uint64_t>(status.st_size) <= file.size &&
                              ContentDigest::is_digest(file.etag);
    if (is_beginning) {
      add_content(descriptor_.get(), path_, digest_);
    } else {
      restart();
    }
    was_continued_ = digest_.bytes() > 0;
  }

  [[nodiscard]] std::uint64_t bytes() const noexcept { return digest_.bytes(); }
  [[nodiscard]] bool is_complete() const noexcept { return bytes() == file_.size; }
  /// Whether it began with bytes of an earlier download.
  [[nodiscard]] bool was_continued() const noexcept { return was_continued_; }

  void restart() {
    FOVEA_CHECK(ftruncate(descriptor_.get(), 0) == 0, kIo, path_,
                ": cannot write: ", system_reason());
    digest_ = ContentDigest(file_.etag, file_.size);
    was_continued_ = false;
  }
  void add(std::span<const std::byte> bytes) {
    lseek(descriptor_.get(), static_cast<off_t>(this->bytes()), SEEK_SET);
    FOVEA_CHECK(write_all(descriptor_.get(), bytes), kIo, path_,
                ": cannot write: ", system_reason());
    digest_.add(bytes);
  }
  /// Whether the content is that of the file. Once.
  [[nodiscard]] bool matches() { return digest_.matches(); }
  /// Gives it its name. The last call.
  void finish(const std::string& path) {
    FOVEA_CHECK(fsync(descriptor_.get()) == 0 && descriptor_.close(), kIo, path_,
                ": cannot write: ", system_reason());
    FOVEA_CHECK(std::rename(path_.c_str(), path.c_str()) == 0, kIo, path, ": cannot be made of ",
                path_, ": ", system_reason());
  }

 private:
  const std::string& path_;
  const HubFile& file_;
  FileDescriptor descriptor_;
  ContentDigest digest_;
  bool was_continued_ = false;
};

void check_room(const std::string& path, std::uint64_t needed) {
  struct statvfs disk {};
  const std::string folder = std::filesystem::path(path).parent_path();
  if (statvfs(folder.c_str(), &disk) != 0) return;  // writing says what is wrong
  const std::uint64_t room = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  FOVEA_CHECK(needed <= room, kIo, path, ": expected room for ", needed, " bytes, ", folder,
              " has ", room);
}

/// Gets what is missing of a file.
void fill(Repository& repository, const HubFile& file, PartialFile& partial,
          const DownloadWatch& watch) {
  const Repository::Sink sink{.restart = [&] { partial.restart(); },
                              .add =
                                  [&](std::span<const std::byte> bytes) {
                                    partial.add(bytes);
                                    watch.on_bytes(partial.bytes());
                                  }};
  std::uint64_t most = partial.bytes();
  for (int failures = 0; !partial.is_complete();) {
    std::string problem;
    try {
      problem = repository.read(file, partial.bytes(), sink);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable) throw;
      problem = error.what();
    }
    if (partial.is_complete()) return;
    if (problem.empty()) problem = "the connection ended early";
    failures = partial.bytes() > most ? 0 : failures + 1;
    most = std::max(most, partial.bytes());
    FOVEA_CHECK(failures < kMaxFailures, kUnavailable, file.url, ": ", problem, ", after ",
                partial.bytes(), " of ", file.size,
                " bytes; what is there is kept for the next time");
    log_to(watch.log, LogLevel::kInfo,
           cat("hub.retry file=\"", file.name, "\" bytes=", partial.bytes(), " reason=\"", problem,
               "\""));
    if (failures > 0) pause_for(kFirstPause * (1 << (failures - 1)));
  }
}

}  // namespace

bool has_content(const std::string& path, const HubFile& file) {
  struct stat status {};
  const FileDescriptor descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!descriptor.is_open() || fstat(descriptor.get(), &status) != 0) return false;
  if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) != file.size) {
    return false;
  }
  ContentDigest digest(file.etag, file.size);
  add_content(descriptor.get(), path, digest);
  return digest.matches();
}

void download(Repository& repository, const HubFile& file, const FilePaths& paths, bool trusts_name,
              const DownloadWatch& watch) {
  const auto is_there = [&] {
    struct stat status {};
    if (!trusts_name) return has_content(paths.final, file);
    return stat(paths.final.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           static_cast<std::uint64_t>(status.st_size) == file.size;
  };
  if (is_there()) return watch.on_bytes(file.size);
  const FileLock lock(paths.lock, watch.log);
  if (is_there()) return watch.on_bytes(file.size);  // another process has brought it
  for (const std::string& path : {paths.partial, paths.final}) {
    std::error_code failure;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failure);
  }
  const Stopwatch time;
  PartialFile partial(paths.partial, file);
  const std::uint64_t before = partial.bytes();
  check_room(paths.partial, file.size - before);
  watch.on_bytes(before);
  fill(repository, file, partial, watch);
  const bool was_continued = partial.was_continued();
  bool matches = partial.matches();
  if (!matches && was_continued) {  // the beginning may be to blame
    log_to(watch.log, LogLevel::kWarning, cat("hub.restart file=\"", file.name, "\""));
    partial.restart();
    fill(repository, file, partial, watch);
    matches = partial.matches();
  }
  if (!matches) {
    partial.restart();
    throw Error(ErrorCode::kCorruptData,
                cat(file.url, ": the ", file.size, " bytes that came are not those of the digest ",
                    file.etag, " that the hub gives"));
  }
  partial.finish(paths.final);
  log_to(watch.log, LogLevel::kInfo,
         cat("hub.file name=\"", file.name, "\" bytes=", file.size, " continued_at=", before,
             " ms=", static_cast<std::int64_t>(time.elapsed_ms())));
}

}  // namespace fovea::hub
