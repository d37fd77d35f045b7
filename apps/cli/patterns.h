#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/call_bounds.h"

namespace fovea::cli {

/// Whether `text` has a character that makes it a pattern: `*`, `?` or `[`.
[[nodiscard]] bool is_pattern(std::string_view text);

/// Whether a name, not a path, matches a part of a pattern as in a shell: `*`, `?`, `[a-z]`, `[!a]`
/// and `\\` before a character that means itself; a period in front is matched by a period alone.
/// Time: at most the product of both lengths.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view name);

/// Finds the files of patterns, within bounds on the work for all of them together.
class PatternSearch {
 public:
  /// @param max_entries most entries of directories that are looked at.
  PatternSearch(const CallBounds& bounds, std::size_t max_entries)
      : bounds_(bounds), max_entries_(max_entries), left_(max_entries) {}

  /// Returns the paths that match a pattern, sorted. Directories that cannot be read hold nothing.
  /// @throws Error(kNotFound) if nothing does, Error(kInvalidArgument) if there is too much to look
  /// at, Error(kDeadline) or Error(kCancelled) by the bounds; all name the pattern.
  [[nodiscard]] std::vector<std::string> files(const std::string& pattern);

  /// Counts the entries of a directory that is read as a whole. @throws as files.
  void count_entries(const std::string& directory);

  /// Whether there was too much to look at.
  [[nodiscard]] bool is_exhausted() const noexcept { return is_exhausted_; }

 private:
  void expand(std::string found, std::string_view rest);
  [[nodiscard]] std::vector<std::string> entries_of(const std::string& directory);
  void check_bounds() const;

  CallBounds bounds_;
  std::size_t max_entries_;
  std::size_t left_;
  bool is_exhausted_ = false;
  std::string pattern_;  // that is expanded
  std::vector<std::string> files_;
};

}  // namespace fovea::cli
