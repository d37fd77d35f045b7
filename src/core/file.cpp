// Reading whole files through the system's calls: the standard streams do not say why
// something failed.
#include "core/file.h"

#include "core/check.h"
#include "fovea/atomic_file.h"
#include "fovea/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

namespace fovea {

namespace {

/// The first bytes of a file that has so many.
std::vector<std::uint8_t> read_bytes(const InputFile& file, std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  file.read_at(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

/// Whether this begins as "https://" does, with a scheme. Source: RFC 3986, 3.1.
bool is_url(std::string_view text) {
  const std::string_view scheme = text.substr(0, text.find("://"));
  return !scheme.empty() && scheme.size() < text.size() &&
         scheme.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.") ==
             std::string_view::npos;
}

/// Whether the system sees all of a path. It would take the part in front of a null byte for it.
bool is_whole(std::string_view path) noexcept { return path.find('\0') == path.npos; }

}  // namespace

bool path_exists(const std::string& path) noexcept {
  struct stat status {};
  return is_whole(path) && lstat(path.c_str(), &status) == 0;
}

bool directory_exists(const std::string& path) noexcept {
  struct stat status {};
  return is_whole(path) && stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::string system_reason() { return std::generic_category().message(errno); }

void for_each_entry(const std::string& path, const std::function<void(std::string_view)>& visit) {
  const auto close = [](DIR* directory) { closedir(directory); };
  const std::unique_ptr<DIR, decltype(close)> directory(opendir(path.c_str()), close);
  FOVEA_CHECK(directory, kIo, path, ": cannot list: ", system_reason());
  while (true) {
    errno = 0;
    const dirent* const entry = readdir(directory.get());
    FOVEA_CHECK(entry != nullptr || errno == 0, kIo, path, ": cannot list: ", system_reason());
    if (entry == nullptr) return;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") visit(name);
  }
}

std::vector<std::string> list_directory(const std::string& path) {
  std::vector<std::string> names;
  for_each_entry(path, [&](std::string_view name) { names.emplace_back(name); });
  std::ranges::sort(names);
  return names;
}

// Without O_NONBLOCK, opening a pipe would wait for a writer.
InputFile::InputFile(const std::string& path) : path_(path) {
  FOVEA_CHECK(is_whole(path), kNotFound, printable(path), ": no file has a null byte in its name");
  file_.reset(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const bool absent = !file_.is_open() && (errno == ENOENT || errno == ENOTDIR);
  FOVEA_CHECK(!absent || !path_exists(path), kNotFound, path,
              ": a link to a file that is not there; run the download of this file again");
  FOVEA_CHECK(!absent, kNotFound, path,
              is_url(path) ? ": URLs are not read, expected a path" : ": no such file");
  FOVEA_CHECK(file_.is_open(), kIo, path, ": cannot open: ", system_reason());
  struct stat status {};
  FOVEA_CHECK(fstat(file_.get(), &status) == 0, kIo, path, ": cannot stat: ", system_reason());
  FOVEA_CHECK(S_ISREG(status.st_mode), kIo, path, ": not a regular file");
  size_bytes_ = static_cast<std::size_t>(status.st_size);
}

void InputFile::read_at(std::size_t offset, std::span<std::byte> out) const {
  for (std::size_t done = 0; done < out.size();) {
    const ssize_t got = ::pread(file_.get(), out.data() + done, out.size() - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    FOVEA_CHECK(got >= 0, kIo, path_, ": cannot read: ", system_reason());
    FOVEA_CHECK(got > 0, kIo, path_, ": file ends after ", offset + done, " of ", size_bytes_,
                " bytes: it shrank while it was read");
    done += static_cast<std::size_t>(got);
  }
}

std::vector<std::uint8_t> read_file(const std::string& path, std::size_t max_bytes) {
  const InputFile file(path);
  FOVEA_CHECK(file.size_bytes() <= max_bytes, kInvalidArgument, path, ": file has ",
              file.size_bytes(), " bytes, at most ", max_bytes, " are read");
  return read_bytes(file, file.size_bytes());
}

std::vector<std::uint8_t> read_file_start(const std::string& path, std::size_t max_bytes) {
  const InputFile file(path);
  return read_bytes(file, std::min(file.size_bytes(), max_bytes));
}

void replace_file(const std::string& path, std::string_view text) {
  std::error_code told_by_the_file;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), told_by_the_file);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace fovea
