// The size of the encoder cache: rows, or bytes with a suffix.
#include "flags/cache_size.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "errors.h"
#include "flags/parse.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};

constexpr std::array kUnits{Unit{"b", 1},
                            Unit{"k", 1e3},
                            Unit{"m", 1e6},
                            Unit{"g", 1e9},
                            Unit{"ki", 1024.0},
                            Unit{"mi", 1024.0 * 1024},
                            Unit{"gi", 1024.0 * 1024 * 1024}};

/// "MiB" as "mi".
std::string unit_name(std::string_view suffix) {
  std::string name;
  for (const char c : suffix) {
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (name.size() > 1 && name.ends_with('b')) name.pop_back();
  return name;
}

/// Bytes as these flags take them.
std::string default_text(std::int64_t bytes) {
  return bytes == 0 ? "0" : bytes_text(static_cast<std::size_t>(bytes));
}

}  // namespace

CacheSize parse_cache_size(std::string_view text, std::string_view what) {
  const std::string_view whole = trimmed(text);
  const std::size_t digits = whole.find_first_not_of("0123456789.");
  if (digits == std::string_view::npos) return {.rows = parse_whole(whole, 0, what)};
  const std::string name = unit_name(trimmed(whole.substr(digits)));
  const auto* const unit = std::ranges::find(kUnits, name, &Unit::name);
  constexpr double kMost = 9e18;
  const double bytes =
      unit == kUnits.end() ? kMost : parse_number(whole.substr(0, digits), what) * unit->bytes;
  if (bytes < 0 || bytes >= kMost) {
    throw UsageError(std::string(what) +
                     ": expected a number of rows, or of bytes with K, M, G, Ki, Mi or Gi behind "
                     "it, got \"" +
                     one_line(text) + "\"");
  }
  return {.bytes = static_cast<std::int64_t>(bytes)};
}

std::int64_t parse_bytes(std::string_view text, std::string_view what) {
  const CacheSize size = parse_cache_size(text, what);
  if (size.rows != 0) {
    throw UsageError(std::string(what) +
                     ": expected bytes, with K, M, G, Ki, Mi or Gi behind the "
                     "number, got \"" +
                     one_line(text) + "\"");
  }
  return size.bytes;
}

void add_encoder_cache_size(CLI::App& verb, CacheSize& size, std::int64_t& device_bytes) {
  verb.add_option_function<std::string>(
          "--encoder-cache-size",
          [&size](const std::string& text) {
            size = parse_cache_size(text, "--encoder-cache-size");
          },
          "Keep the rows of so many rows' or bytes' worth of items, so that equal items are "
          "encoded once: 16384, 512M, 2Gi; 0: none")
      ->type_name("ROWS|BYTES")
      ->default_str(default_text(size.bytes))
      ->group("Model and device");
  verb.add_option_function<std::string>(
          "--encoder-device-cache-size",
          [&device_bytes](const std::string& text) {
            device_bytes = parse_bytes(text, "--encoder-device-cache-size");
          },
          "Keep such rows in so many bytes of each device, in front of the host's: 512M, 2Gi; "
          "0: none")
      ->type_name("BYTES")
      ->default_str(default_text(device_bytes))
      ->group("Model and device");
}

}  // namespace fovea::cli
