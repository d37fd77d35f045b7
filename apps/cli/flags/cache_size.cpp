// Sizes of memory: bytes with a suffix.
#include "flags/cache_size.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "errors.h"
#include "flags/option_flags.h"
#include "flags/parse.h"
#include "fovea/option_table.h"
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
std::string bytes_default(std::int64_t bytes) {
  return bytes == 0 ? "0" : bytes_text(static_cast<std::size_t>(bytes));
}

}  // namespace

std::int64_t parse_bytes(std::string_view text, std::string_view what) {
  const std::string_view whole = trimmed(text);
  if (whole == "0") return 0;
  const std::size_t digits = std::min(whole.find_first_not_of("0123456789."), whole.size());
  const std::string name = unit_name(trimmed(whole.substr(digits)));
  const auto* const unit = std::ranges::find(kUnits, name, &Unit::name);
  constexpr double kMost = 9e18;
  const double bytes =
      unit == kUnits.end() ? kMost : parse_number(whole.substr(0, digits), what) * unit->bytes;
  if (bytes < 0 || bytes >= kMost) {
    throw UsageError(std::string(what) +
                     ": expected bytes, with K, M, G, Ki, Mi or Gi behind the number, got \"" +
                     one_line(text) + "\"");
  }
  return static_cast<std::int64_t>(bytes);
}

void add_encoder_cache_size(CLI::App& verb, EngineOptions& options) {
  const auto add = [&verb, &options](std::int64_t EngineOptions::*member) {
    add_own_flag(verb, find_option(member),
                 [&options, member](const std::string& text, const std::string& flag) {
                   options.*member = parse_bytes(text, flag);
                 })
        ->type_name("BYTES")
        ->default_str(bytes_default(options.*member));
  };
  add(&EngineOptions::encoder_cache_bytes);
  add(&EngineOptions::encoder_device_cache_size);
  add_own_flag(verb, find_option(&EngineOptions::shared_rows),
               [&options](const std::string& text, const std::string& /*flag*/) {
                 options.shared_rows = text;
               })
      ->type_name("DIR|URL");
  add(&EngineOptions::shared_rows_bytes);
  add_own_flag(verb, find_option(&EngineOptions::shared_rows_seconds),
               [&options](const std::string& text, const std::string& flag) {
                 options.shared_rows_seconds = parse_whole(text, 1, flag);
               })
      ->type_name("SECONDS")
      ->default_str(std::to_string(options.shared_rows_seconds));
}

}  // namespace fovea::cli
