// Lines of a long file.
#include "shards/lines.h"

#include <algorithm>
#include <span>
#include <utility>

#include "fovea/error.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10;

}  // namespace

LineReader::LineReader(std::string path) : path_(std::move(path)), file_(path_) {}

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
  const std::size_t more = std::min(kReadBytes, file_.size_bytes() - read_);
  buffer_.resize(had + more);
  file_.read_at(read_, std::as_writable_bytes(std::span(buffer_)).subspan(had));
  read_ += more;
  return more > 0;
}

}  // namespace fovea::cli
