// Text files in and out, and the rule that no output destroys an input.
#include "output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "errors.h"
#include "fovea/error.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

/// An open file, closed at the end.
struct Descriptor {
  int number;
  explicit Descriptor(int opened) : number(opened) {}
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

/// What a file is, whatever it is called: device and inode.
using FileId = std::pair<dev_t, ino_t>;

std::optional<FileId> file_id(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileId(status.st_dev, status.st_ino);
}

}  // namespace

void check_output_paths(std::initializer_list<std::string> outputs,
                        std::span<const std::string> inputs) {
  std::map<FileId, std::string> read;
  for (const std::string& input : inputs) {
    if (const std::optional<FileId> id = file_id(input)) read.emplace(*id, input);
  }
  std::set<std::filesystem::path> written;
  for (const std::string& output : outputs) {
    if (output.empty()) continue;
    if (!written.insert(std::filesystem::weakly_canonical(output_target(output))).second) {
      throw UsageError(output + ": expected a file for each output, got one for two of them");
    }
    const std::optional<FileId> id = file_id(output);
    if (const auto input = id ? read.find(*id) : read.end(); input != read.end()) {
      throw UsageError(output + ": expected a file of its own for the output, got the input " +
                       input->second);
    }
  }
}

AtomicFile prepare_text_file(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(content)));
  file.flush();
  return file;
}

void write_text_file(const std::string& path, std::string_view content) {
  prepare_text_file(path, content).commit();
}

std::string read_text_file(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0) throw Error(ErrorCode::kNotFound, path + ": cannot open the file");
  struct stat status {};
  if (::fstat(file.number, &status) != 0 || !S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::kIo, path + ": expected a text file, got " +
                                    (S_ISDIR(status.st_mode) ? "a directory" : "no regular file"));
  }
  std::string content;
  std::array<char, 65536> part{};
  while (true) {
    const ssize_t count = ::read(file.number, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(ErrorCode::kIo, path + ": cannot read the file");
    if (count == 0) return content;
    content.append(part.data(), static_cast<std::size_t>(count));
    if (content.size() > kMaxTextFileBytes) {
      throw Error(ErrorCode::kInvalidArgument, path + ": expected a text file of at most " +
                                                   bytes_text(kMaxTextFileBytes) + ", got more");
    }
  }
}

}  // namespace fovea::cli
