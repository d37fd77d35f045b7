// --deadline: how long a verb may take.
#include "flags/deadline.h"

#include <algorithm>
#include <string>

#include "errors.h"
#include "flags/parse.h"

namespace fovea::cli {
namespace {

constexpr const char* kCallDeadlineFlag = "--deadline";

double parse_seconds(const std::string& text) {
  const double seconds = parse_number(text, kCallDeadlineFlag);
  if (seconds > 0) return seconds;
  throw UsageError(std::string(kCallDeadlineFlag) + ": expected a number above 0, got \"" + text +
                   "\"");
}

}  // namespace

void add_deadline(CLI::App& verb, std::optional<double>& seconds) {
  verb.add_option_function<std::string>(
          kCallDeadlineFlag, [&seconds](const std::string& text) { seconds = parse_seconds(text); },
          "Give up with exit code 1 if the rows are not there after so many seconds, loading "
          "included (default: never)")
      ->type_name("SECONDS");
}

CallBounds bounds_from_now(const std::optional<double>& seconds) {
  constexpr double kLongest = 1e9;  // thirty years: more would overflow the clock
  if (!seconds) return {};
  const std::chrono::duration<double> time(std::min(*seconds, kLongest));
  return {.deadline = std::chrono::steady_clock::now() +
                      std::chrono::duration_cast<std::chrono::steady_clock::duration>(time)};
}

}  // namespace fovea::cli
