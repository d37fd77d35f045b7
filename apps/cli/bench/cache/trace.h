#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea::cli {

/// An image or video of a prompt.
struct TraceItem {
  std::string key;           ///< equal keys are equal items
  std::int64_t patches = 0;  ///< temporal patches of a video; 0: an image
  std::int64_t rows = 0;     ///< of the image, or of each temporal patch
  std::int64_t text = 0;     ///< tokens in front of it
};

/// A prompt: each item behind its text, and text at the end.
struct TraceRequest {
  std::int64_t step = 0;  ///< in which it arrives
  std::vector<TraceItem> items;
  std::int64_t text = 0;  ///< tokens behind the last item
};

/// Requests by ascending step.
using Trace = std::vector<TraceRequest>;

/// The settings of which a random trace is made.
struct TraceOptions {
  std::int64_t num_requests = 200;
  std::int64_t max_items = 4;     ///< of a request: 1 to so many, all as likely
  std::vector<TraceItem> shapes;  ///< what an item is, all as likely; keys are not used
  double repeat_rate = 0.5;       ///< chance that an item is one of those that came before
  double arrivals = 0.5;          ///< requests per step, on average
  std::int64_t text = 200;        ///< tokens in front of every item and at the end
  std::uint64_t seed = 0;
};

/// A trace that depends on its options alone. Requests come independently of each other.
[[nodiscard]] Trace random_trace(const TraceOptions& options);

/// Reads a trace, one request per line as JSON: {"step": 0, "items": [{"key": "a", "patches": 8,
/// "rows": 322, "text": 40}], "text": 12}. "patches", "text" and "step" are 0 where they are
/// absent.
/// @throws as read_text_file, and Error(kCorruptData) naming the line.
[[nodiscard]] Trace read_trace(const std::string& path);

/// Reads shapes of items: "1196" is an image with so many rows, "8x322" a video of 8 temporal
/// patches with 322 rows each; several are separated by commas.
/// @throws UsageError naming `what`.
[[nodiscard]] std::vector<TraceItem> parse_shapes(const std::string& text, const std::string& what);

/// Tokens of "<12.3 seconds>", as Qwen3-VL writes it in front of a temporal patch: one per digit in
/// front of the point, and five. Source: docs/encoder_cache.md.
[[nodiscard]] std::int64_t timestamp_tokens(double seconds);

/// Which positions of an item take a row: all of an image; of each temporal patch of a video those
/// between its timestamp with a start marker and an end marker. Patches are `seconds` apart.
[[nodiscard]] std::vector<bool> placeholder_mask(const TraceItem& item, double seconds);

}  // namespace fovea::cli
