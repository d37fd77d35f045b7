#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::cli {

/// The words of a command line, with flags to take out and to put in. A flag is "--name value" or
/// "--name=value" in front of "--".
class CommandLine {
 public:
  explicit CommandLine(std::vector<std::string> words) : words_(std::move(words)) {}

  /// Whether the line begins with these verbs.
  [[nodiscard]] bool is(std::initializer_list<std::string_view> verbs) const;
  [[nodiscard]] bool has(std::string_view flag) const;
  /// Takes a flag out and returns its value; absent if it is not there.
  /// @throws UsageError if it has no value or is given again.
  std::optional<std::string> take(std::string_view flag);
  /// Takes a flag without a value out. @returns whether it was there.
  bool take_switch(std::string_view flag);
  /// Puts words behind all others, but in front of "--".
  void put(std::initializer_list<std::string> words);

  [[nodiscard]] const std::vector<std::string>& words() const& noexcept { return words_; }
  [[nodiscard]] std::vector<std::string> words() && noexcept { return std::move(words_); }

 private:
  using Words = std::vector<std::string>;

  [[nodiscard]] Words::const_iterator end_of_flags() const;
  [[nodiscard]] Words::const_iterator find(std::string_view flag) const;

  Words words_;
};

}  // namespace fovea::cli
