// Patterns without glob(3): that one looks at any number of entries, and takes exponential time for
// some names.
#include "patterns.h"

#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "fovea/error.h"

namespace fovea::cli {
namespace {

namespace fs = std::filesystem;

/// Length of what stands for one character at the front of a pattern: a class, an escaped character
/// or any other.
std::size_t unit_length(std::string_view pattern) {
  if (pattern.front() == '\\') return std::min<std::size_t>(pattern.size(), 2);
  if (pattern.front() != '[') return 1;
  std::size_t end = 1;
  if (end < pattern.size() && (pattern[end] == '!' || pattern[end] == '^')) ++end;
  end = pattern.find(']', end + 1);  // the first character of a class may be a bracket
  return end == std::string_view::npos ? 1 : end + 1;
}

bool unit_matches(std::string_view unit, char character) {
  if (unit == "?") return true;
  if (unit.size() == 1) return unit.front() == character;
  const char text[] = {character, '\0'};
  return ::fnmatch(std::string(unit).c_str(), text, 0) == 0;
}

/// A part of a path without its backslashes.
std::string unescaped(std::string_view part) {
  std::string text;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] == '\\' && i + 1 < part.size()) ++i;
    text += part[i];
  }
  return text;
}

}  // namespace

bool is_pattern(std::string_view text) {
  return text.find_first_of("*?[") != std::string_view::npos;
}

bool matches(std::string_view pattern, std::string_view name) {
  if (name.starts_with('.') && !pattern.starts_with('.')) return false;
  std::string_view after_star;  // of the last star, which takes no more than it must
  std::string_view name_at_star;
  bool has_star = false;
  while (!name.empty()) {
    const std::size_t length = pattern.empty() ? 0 : unit_length(pattern);
    if (length == 1 && pattern.front() == '*') {
      pattern.remove_prefix(1);
      after_star = pattern;
      name_at_star = name;
      has_star = true;
    } else if (length > 0 && unit_matches(pattern.substr(0, length), name.front())) {
      pattern.remove_prefix(length);
      name.remove_prefix(1);
    } else if (has_star) {
      name_at_star.remove_prefix(1);
      pattern = after_star;
      name = name_at_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*') == std::string_view::npos;
}

std::vector<std::string> PatternSearch::files(const std::string& pattern) {
  pattern_ = pattern;
  files_.clear();
  expand({}, pattern_);
  if (files_.empty()) {
    throw Error(ErrorCode::kNotFound, pattern_ + ": the pattern matches no file");
  }
  std::ranges::sort(files_);
  return std::move(files_);
}

void PatternSearch::count_entries(const std::string& directory) {
  pattern_ = directory;
  (void)entries_of(directory);
}

/// @param found what matches the pattern up to `rest`.
void PatternSearch::expand(std::string found, std::string_view rest) {
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(part.size());
    if (is_pattern(part)) {
      for (const std::string& name : entries_of(found.empty() ? "." : found)) {
        if (matches(part, name)) expand(found + name, rest);
      }
      return;
    }
    found += unescaped(part);
    for (; rest.starts_with('/'); rest.remove_prefix(1)) found += '/';
  }
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(found, ignored))) files_.push_back(std::move(found));
}

std::vector<std::string> PatternSearch::entries_of(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code failure;
  fs::directory_iterator entry(directory, failure);
  for (; !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
    if (left_ == 0) {
      is_exhausted_ = true;
      throw Error(ErrorCode::kInvalidArgument, pattern_ + ": expected at most " +
                                                   std::to_string(max_entries_) +
                                                   " files and directories to look at, got more");
    }
    if (--left_ % 1024 == 0) check_bounds();
    const std::string& path = entry->path().native();  // filename() would parse all of it
    names.push_back(path.substr(path.rfind('/') + 1));
  }
  check_bounds();
  return names;
}

void PatternSearch::check_bounds() const {
  if (bounds_.stop.stop_requested()) {
    throw Error(ErrorCode::kCancelled, pattern_ + ": stopped, as the caller asked");
  }
  if (std::chrono::steady_clock::now() >= bounds_.deadline) {
    throw Error(ErrorCode::kDeadline, pattern_ + ": not done before its deadline");
  }
}

}  // namespace fovea::cli
