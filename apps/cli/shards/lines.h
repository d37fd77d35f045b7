#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/file.h"

namespace fovea::cli {

/// The lines of a file of any length, of which one at a time is in memory.
class LineReader {
 public:
  /// Longest line without its end: a path and what is said about it.
  static constexpr std::size_t kMaxLineBytes = std::size_t{64} << 10;

  /// @throws as InputFile.
  explicit LineReader(std::string path);

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
  InputFile file_;
  std::size_t read_ = 0;  // bytes of the file
  std::string buffer_;
  std::size_t begin_ = 0;  // of what next() has not returned
  std::int64_t number_ = 0;
  std::int64_t end_ = 0;
  bool whole_ = true;
};

}  // namespace fovea::cli
