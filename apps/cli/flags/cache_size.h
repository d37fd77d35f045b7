#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "fovea/options.h"

namespace fovea::cli {

/// A size of the encoder cache: rows or bytes, the other is 0.
struct CacheSize {
  std::int64_t rows = 0;
  std::int64_t bytes = 0;
};

/// Reads "16384", a number of rows as in vLLM, or with a suffix a number of bytes: "512M", "1.5Gi",
/// "64MiB". K, M and G are powers of 1000, Ki, Mi and Gi of 1024; a B may follow.
/// @throws UsageError naming `what` for anything else, also for more bytes than 63 bits count.
[[nodiscard]] CacheSize parse_cache_size(std::string_view text, std::string_view what);

/// Reads "512M", "1.5Gi", "64MiB": bytes, with the suffixes above.
/// @throws UsageError naming `what` for anything else, a number alone too.
[[nodiscard]] std::int64_t parse_bytes(std::string_view text, std::string_view what);

/// Adds --encoder-cache-size, of which an option in rows or one in bytes is made, and in bytes
/// --encoder-device-cache-size. What the options hold is shown as the default.
void add_encoder_cache_size(CLI::App& verb, EngineOptions& options);

}  // namespace fovea::cli
