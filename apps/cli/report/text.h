#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::cli {

/// Formats with a fixed number of decimals: fixed(1.005, 1) is "1.0".
[[nodiscard]] std::string fixed(double value, int decimals);

/// Formats a share of 1 as per cent: percent(0.985) is "98.5 %".
[[nodiscard]] std::string percent(double share);

/// Formats a count with its noun: counted(1, "row") is "1 row", counted(2, "batch", "batches") is
/// "2 batches".
[[nodiscard]] std::string counted(std::int64_t count, std::string_view noun,
                                  std::string_view plural = "");

/// Formats a byte count with a binary unit: "512 B", "12.5 KiB", "1.2 GiB".
[[nodiscard]] std::string bytes_text(std::size_t bytes);

/// Formats "640x480".
[[nodiscard]] std::string size_text(std::int64_t width_px, std::int64_t height_px);

/// Formats numbers with `separator` between them.
[[nodiscard]] std::string join(std::span<const std::int64_t> values, std::string_view separator);

/// Makes a text fit for one line of a terminal: runs of line breaks and tabs become one space,
/// other control characters a question mark.
[[nodiscard]] std::string one_line(std::string_view text);

/// Keeps at most `max_length` bytes from the end of a path, marking the cut with "...". Cuts before
/// a folder name if one begins in what is kept.
[[nodiscard]] std::string shorten_path(std::string_view path, std::size_t max_length);

/// The candidate that `name` was probably meant to be, absent if none is near. Case is ignored and
/// an unfinished candidate ("enc" for "encode") counts as near.
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view name,
                                                      std::span<const std::string> candidates);

/// Reads a whole number >= min. @throws UsageError naming `what` otherwise.
[[nodiscard]] std::int64_t parse_whole(std::string_view text, std::int64_t min,
                                       std::string_view what);

/// Makes an int of a number from a flag. @throws UsageError naming `what` if it is too large.
[[nodiscard]] int to_int(std::int64_t value, std::string_view what);

/// Reads a finite number such as "0.5" or "1e3". @throws UsageError naming `what` otherwise.
[[nodiscard]] double parse_number(std::string_view text, std::string_view what);

/// Reads "50,90,99.9". @throws UsageError naming `what` if a part is not a number from 0 to 100.
[[nodiscard]] std::vector<double> parse_percents(std::string_view text, std::string_view what);

/// Splits at commas; white space around the parts is dropped, empty parts are kept.
[[nodiscard]] std::vector<std::string> split_commas(std::string_view text);

/// Reads "64,128,256". @throws UsageError naming `what` if a part is not a whole number >= 1.
[[nodiscard]] std::vector<std::int64_t> parse_positive_list(std::string_view text,
                                                            std::string_view what);

}  // namespace fovea::cli
