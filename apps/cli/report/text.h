#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::cli {

/// Formats with a fixed number of decimals, at most 20: fixed(1.005, 1) is "1.0". What is not
/// finite is "-".
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

/// Formats numbers or names with `separator` between them.
[[nodiscard]] std::string join(std::span<const std::int64_t> values, std::string_view separator);
[[nodiscard]] std::string join(std::span<const std::string> names, std::string_view separator);

/// The text without white space at its ends; a view into `text`.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// Makes a text fit for one line of a terminal: runs of line breaks and tabs become one space, the
/// rest is printable().
[[nodiscard]] std::string one_line(std::string_view text);

/// A blank between words that stay on one line; wrapped() makes a space of it.
inline constexpr std::string_view kUnbrokenBlank = "\x1f";

/// Breaks lines of more than `columns` characters between words; longer words stay whole. Lines
/// that begin with a blank, as examples do, are left alone.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t columns);

/// Keeps at most `max_length` bytes from the end of a path, marking the cut with "...". Cuts before
/// a folder name if one begins in what is kept.
[[nodiscard]] std::string shorten_path(std::string_view path, std::size_t max_length);

/// The candidate that `name` was probably meant to be, absent if none is near. Case is ignored and
/// an unfinished candidate ("enc" for "encode") counts as near.
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view name,
                                                      std::span<const std::string> candidates);

}  // namespace fovea::cli
