// Flags among the words of a command line, before it is parsed.
#include "vllm/command_line.h"

#include <algorithm>

#include "errors.h"

namespace fovea::cli {
namespace {

bool is_flag(std::string_view word, std::string_view flag) {
  return word.starts_with(flag) && (word.size() == flag.size() || word[flag.size()] == '=');
}

}  // namespace

bool CommandLine::is(std::initializer_list<std::string_view> verbs) const {
  return words_.size() >= verbs.size() && std::equal(verbs.begin(), verbs.end(), words_.begin());
}

CommandLine::Words::const_iterator CommandLine::end_of_flags() const {
  return std::ranges::find(words_, "--");
}

CommandLine::Words::const_iterator CommandLine::find(std::string_view flag) const {
  return std::find_if(words_.begin(), end_of_flags(),
                      [&](const std::string& word) { return is_flag(word, flag); });
}

bool CommandLine::has(std::string_view flag) const { return find(flag) != end_of_flags(); }

std::optional<std::string> CommandLine::take(std::string_view flag) {
  const auto count = std::count_if(words_.cbegin(), end_of_flags(),
                                   [&](const auto& word) { return is_flag(word, flag); });
  if (count == 0) return std::nullopt;
  const std::string name(flag);
  if (count > 1) {
    throw UsageError(name + ": given " + (count == 2 ? "twice" : std::to_string(count) + " times") +
                     ", expected once");
  }
  const auto at = find(flag);
  if (at->size() > flag.size()) {
    std::string value = at->substr(flag.size() + 1);
    words_.erase(at);
    return value;
  }
  if (at + 1 == end_of_flags()) throw UsageError(name + ": expected a value");
  std::string value = *(at + 1);
  words_.erase(at, at + 2);
  return value;
}

bool CommandLine::take_switch(std::string_view flag) {
  const std::size_t before = words_.size();
  words_.erase(
      std::remove(words_.begin(), words_.begin() + (end_of_flags() - words_.cbegin()), flag),
      end_of_flags());
  return words_.size() < before;
}

void CommandLine::put(std::initializer_list<std::string> words) {
  words_.insert(end_of_flags(), words);
}

}  // namespace fovea::cli
