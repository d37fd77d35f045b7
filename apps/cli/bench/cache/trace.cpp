// Traces of what comes to a scheduler: prompts with images and videos, some of them again and
// again.
#include "bench/cache/trace.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>

#include "bench/synthetic.h"
#include "errors.h"
#include "flags/json_text.h"
#include "flags/parse.h"
#include "fovea/error.h"
#include "fovea/text.h"
#include "output_file.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr std::int64_t kMaxCount = 1'000'000;
constexpr std::int64_t kMaxRows = 10'000'000;  // of an item

/// A whole number of an object, from 0 to kMaxCount; 0 if it is absent.
std::int64_t number(const JsonView& object, const char* key) {
  const std::optional<JsonView> found = object.find(key);
  if (!found) return 0;
  const std::int64_t value = found->integer().value_or(-1);
  if (value >= 0 && value <= kMaxCount) return value;
  throw Error(ErrorCode::kCorruptData,
              std::string(key) + ": expected " + whole_number_text(0, kMaxCount));
}

/// Whether the rows of an item are a number to work with.
bool has_size(const TraceItem& item) {
  return std::max(item.patches, std::int64_t{1}) * item.rows <= kMaxRows;
}

constexpr const char* kExpected =
    R"(expected a request such as {"step": 0, "items": [{"key": "a", "rows": 100}]})";
constexpr const char* kTooLarge = "an item of more than 10000000 rows";

TraceItem item_of(const JsonView& item) {
  TraceItem read{item.at("key").as_string(), number(item, "patches"), number(item, "rows"),
                 number(item, "text")};
  if (!has_size(read)) throw Error(ErrorCode::kCorruptData, kTooLarge);
  return read;
}

/// Nothing if the line is no request.
std::optional<TraceRequest> request_of(const std::string& line) {
  const std::optional<JsonDocument> json = parse_json_object(line);
  const std::optional<JsonView> items = json ? json->root().find("items") : std::nullopt;
  if (!items || !items->is_array()) return std::nullopt;
  TraceRequest request{number(json->root(), "step"), {}, number(json->root(), "text")};
  for (const JsonView& item : items->elements()) {
    const std::optional<JsonView> key = item.is_object() ? item.find("key") : std::nullopt;
    if (!key || !key->is_string()) return std::nullopt;
    request.items.push_back(item_of(item));
  }
  return request;
}

}  // namespace

Trace random_trace(const TraceOptions& options) {
  Random random(options.seed);
  Trace trace;
  std::vector<TraceItem> seen;
  double arrival = 0;
  for (std::int64_t i = 0; i < options.num_requests; ++i) {
    TraceRequest request{static_cast<std::int64_t>(arrival), {}, options.text};
    // The time between requests that come independently has an exponential distribution.
    arrival -= std::log(1 - random.uniform()) / options.arrivals;
    const std::int64_t count = random.between(1, options.max_items);
    for (std::int64_t item = 0; item < count; ++item) {
      const bool repeats = !seen.empty() && random.uniform() < options.repeat_rate;
      const auto& from = repeats ? seen : options.shapes;
      request.items.push_back(
          from[static_cast<std::size_t>(random.between(0, std::ssize(from) - 1))]);
      if (repeats) continue;
      request.items.back().key = std::to_string(seen.size());
      request.items.back().text = options.text;
      seen.push_back(request.items.back());
    }
    trace.push_back(std::move(request));
  }
  return trace;
}

Trace read_trace(const std::string& path) {
  std::istringstream file(read_text_file(path, kMaxTextFileBytes));
  Trace trace;
  std::string line;
  for (std::int64_t number = 1; std::getline(file, line); ++number) {
    if (trimmed(line).empty()) continue;
    const std::string place = path + ":" + std::to_string(number) + ": ";
    try {
      std::optional<TraceRequest> request = request_of(line);
      if (!request) throw Error(ErrorCode::kCorruptData, kExpected);
      trace.push_back(std::move(*request));
    } catch (const Error& error) {
      throw Error(ErrorCode::kCorruptData, place + error.what());
    }
  }
  std::ranges::stable_sort(trace, {}, &TraceRequest::step);
  return trace;
}

std::vector<TraceItem> parse_shapes(const std::string& text, const std::string& what) {
  std::vector<TraceItem> shapes;
  for (const std::string& part : split_commas(text)) {
    const std::size_t x = part.find('x');
    TraceItem& shape = shapes.emplace_back();
    if (x != std::string::npos) {
      shape.patches = parse_whole(part.substr(0, x), 1, what, kMaxCount);
    }
    shape.rows =
        parse_whole(x == std::string::npos ? part : part.substr(x + 1), 1, what, kMaxCount);
    if (!has_size(shape)) throw UsageError(what + ": " + kTooLarge);
  }
  return shapes;
}

std::int64_t timestamp_tokens(double seconds) {
  return std::ssize(std::to_string(static_cast<std::int64_t>(seconds))) + 5;
}

std::vector<bool> placeholder_mask(const TraceItem& item, double seconds) {
  std::vector<bool> mask;
  if (item.patches == 0) mask.resize(static_cast<std::size_t>(item.rows), true);
  for (std::int64_t patch = 0; patch < item.patches; ++patch) {
    const std::int64_t text = timestamp_tokens(static_cast<double>(patch) * seconds) + 1;
    mask.resize(mask.size() + static_cast<std::size_t>(text), false);
    mask.resize(mask.size() + static_cast<std::size_t>(item.rows), true);
    mask.push_back(false);
  }
  return mask;
}

}  // namespace fovea::cli
