// Lines of a long file.
#include "shards/lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "fovea/error.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10;

}  // namespace

// Without O_NONBLOCK, opening a pipe would wait for a writer.
LineReader::LineReader(std::string path)
    : path_(std::move(path)),
      descriptor_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) {
    const int reason = errno;
    throw Error(reason == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                path_ + ": cannot open the file: " + std::generic_category().message(reason));
  }
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode)) return;
  ::close(descriptor_);
  throw Error(ErrorCode::kIo, path_ + ": expected a text file, got no regular file");
}

LineReader::~LineReader() { ::close(descriptor_); }

std::optional<std::string_view> LineReader::next() {
  std::size_t line_end = buffer_.find('\n', begin_);
  while (line_end == std::string::npos) {
    if (buffer_.size() - begin_ > kMaxLineBytes || !read_more()) break;
    line_end = buffer_.find('\n', begin_);
  }
  whole_ = line_end != std::string::npos;
  if (!whole_) line_end = buffer_.size();
  const std::size_t bytes = line_end - begin_;
  if (bytes == 0 && !whole_) return std::nullopt;
  ++number_;
  if (bytes > kMaxLineBytes) {
    throw Error(ErrorCode::kCorruptData, place() + ": expected a line of at most " +
                                             bytes_text(kMaxLineBytes) + ", got a longer one");
  }
  const std::string_view line(buffer_.data() + begin_, bytes);
  begin_ = line_end + (whole_ ? 1 : 0);
  end_ += static_cast<std::int64_t>(bytes) + (whole_ ? 1 : 0);
  return line;
}

/// Whether there was more.
bool LineReader::read_more() {
  buffer_.erase(0, std::exchange(begin_, 0));
  const std::size_t had = buffer_.size();
  buffer_.resize(had + kReadBytes);
  ssize_t count = 0;
  do {
    count = ::read(descriptor_, buffer_.data() + had, kReadBytes);
  } while (count < 0 && errno == EINTR);
  buffer_.resize(had + static_cast<std::size_t>(count < 0 ? 0 : count));
  if (count < 0) throw Error(ErrorCode::kIo, path_ + ": cannot read the file");
  return count > 0;
}

}  // namespace fovea::cli
