#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "fovea/options.h"

namespace fovea::cli {

/// Reads a number of bytes: "512M", "1.5Gi", "64MiB", "0". K, M and G are powers of 1000, Ki, Mi
/// and Gi of 1024; a B may follow.
/// @throws UsageError naming `what` for anything else, a number above 0 alone too, and for more
/// bytes than 63 bits count.
[[nodiscard]] std::int64_t parse_bytes(std::string_view text, std::string_view what);

/// Adds --encoder-cache-size and --encoder-device-cache-size, in bytes, and --shared-rows with the
/// flags of its two kinds of place. What the options hold is shown as the default.
void add_encoder_cache_size(CLI::App& verb, EngineOptions& options);

}  // namespace fovea::cli
