#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fovea::cli {

/// The lines of a file of any length, of which one at a time is in memory.
class LineReader {
 public:
  /// Longest line without its end: a path and what is said about it.
  static constexpr std::size_t kMaxLineBytes = std::size_t{64} << 10;

  /// @throws Error(kNotFound), Error(kIo) also for pipes and devices.
  explicit LineReader(std::string path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// The next line without its end, valid until the next call; absent behind the last one.
  /// @throws Error(kIo), Error(kCorruptData) for a line beyond kMaxLineBytes.
  [[nodiscard]] std::optional<std::string_view> next();

  /// Of the line that next() returned last: its number from 1, where the line behind it begins,
  /// and whether a line break ends it.
  [[nodiscard]] std::int64_t number() const noexcept { return number_; }
  [[nodiscard]] std::int64_t end() const noexcept { return end_; }
  [[nodiscard]] bool whole() const noexcept { return whole_; }
  /// "FILE:LINE", for messages.
  [[nodiscard]] std::string place() const { return path_ + ":" + std::to_string(number_); }

 private:
  [[nodiscard]] bool read_more();

  std::string path_;
  int descriptor_ = -1;
  std::string buffer_;
  std::size_t begin_ = 0;  // of what next() has not returned
  std::int64_t number_ = 0;
  std::int64_t end_ = 0;
  bool whole_ = true;
};

}  // namespace fovea::cli
