#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::cli {

/// The largest number that a flag without a limit of its own takes.
inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

/// Limits of flags that would otherwise ask for more than a machine has.
inline constexpr std::int64_t kMaxThreads = 1024;
inline constexpr std::int64_t kMaxRuns = 1'000'000;     ///< repetitions and requests
inline constexpr std::int64_t kMaxPatches = 1'000'000;  ///< of one image
inline constexpr std::int64_t kMaxEqualItems = 65'536;  ///< in one run

/// "a whole number >= 1", or "a whole number from 1 to 99": what a flag expects.
[[nodiscard]] std::string whole_number_text(std::int64_t min, std::int64_t max);

/// Reads a whole number from `min` to `max`. @throws UsageError naming `what` otherwise.
[[nodiscard]] std::int64_t parse_whole(std::string_view text, std::int64_t min,
                                       std::string_view what, std::int64_t max = kNoLimit);

/// Makes an int of a number from a flag. @throws UsageError naming `what` if it is too large.
[[nodiscard]] int to_int(std::int64_t value, std::string_view what);

/// Reads a finite number such as "0.5" or "1e3". @throws UsageError naming `what` otherwise.
[[nodiscard]] double parse_number(std::string_view text, std::string_view what);

/// Reads "50,90,99.9". @throws UsageError naming `what` if a part is not a number from 0 to 100.
[[nodiscard]] std::vector<double> parse_percents(std::string_view text, std::string_view what);

/// Splits at commas; white space around the parts is dropped, empty parts are kept.
[[nodiscard]] std::vector<std::string> split_commas(std::string_view text);

/// Reads "64,128,256". @throws UsageError naming `what` if a part is not a whole number from 1 to
/// `max`.
[[nodiscard]] std::vector<std::int64_t> parse_positive_list(std::string_view text,
                                                            std::string_view what,
                                                            std::int64_t max = kNoLimit);

/// Reads "255,128,0" into three levels.
/// @throws UsageError naming `flag` for anything else, also for levels above 255.
void read_color(const std::string& text, const std::string& flag, std::uint8_t (&levels)[3]);

/// Reads "0.25". @throws UsageError naming `flag` unless it is at least 0 and less than 1.
[[nodiscard]] double parse_part(const std::string& text, const std::string& flag);

}  // namespace fovea::cli
