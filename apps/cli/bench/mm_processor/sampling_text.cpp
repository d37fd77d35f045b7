// The two small notations of the random workload's flags: buckets as Python writes a dictionary
// with tuples for keys, limits as JSON.
//
//   buckets = '{' [ entry { ',' entry } [ ',' ] ] '}'
//   entry   = key ':' number
//   key     = tuple | '"' tuple '"' | "'" tuple "'"
//   tuple   = '(' height ',' width ',' frames [ ',' ] ')', or the same in square brackets
#include <algorithm>
#include <charconv>
#include <cmath>

#include "bench/mm_processor/sampling.h"
#include "errors.h"
#include "flags/json_text.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr std::int64_t kMaxSidePx = MediaLimits{}.max_image_side_px;
constexpr std::int64_t kMaxFrames = MediaLimits{}.max_video_frames;
constexpr std::int64_t kMaxItems = 1'000'000;

[[noreturn]] void reject(const std::string& what) {
  throw UsageError("--random-mm-bucket-config: " + what);
}

/// Reads a text from left to right; white space between symbols does not count.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  /// Steps over `symbol` if it comes next.
  bool accept(char symbol) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != symbol) return false;
    ++at_;
    return true;
  }
  void expect(char symbol) {
    if (!accept(symbol)) fail(std::string("'") + symbol + "'");
  }
  void expect_end() {
    skip_space();
    if (at_ != text_.size()) fail("nothing after '}'");
  }
  template <class Number>
  Number number(const char* what) {
    skip_space();
    Number value{};
    const char* const begin = text_.data() + at_;
    const auto [end, status] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (status != std::errc{}) fail(what);
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }
  [[noreturn]] void fail(const std::string& expected) const {
    reject("character " + std::to_string(at_ + 1) + ": expected " + expected + ", got " +
           (at_ == text_.size() ? "the end" : "\"" + shown(std::string(word())) + "\""));
  }

 private:
  /// The symbol or the word that comes next.
  [[nodiscard]] std::string_view word() const {
    constexpr std::string_view kSymbols = " \t\r\n{}()[],:'\"";
    const std::size_t end = text_.find_first_of(kSymbols, at_);
    return text_.substr(at_, std::max<std::size_t>(std::min(end, text_.size()) - at_, 1));
  }
  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::int64_t bounded(Scanner& scanner, const char* name, std::int64_t max) {
  const auto value = scanner.number<std::int64_t>("a whole number");
  if (value >= 1 && value <= max) return value;
  reject("expected " + std::string(name) + " from 1 to " + std::to_string(max) + ", got " +
         std::to_string(value));
}

ItemSize scan_size(Scanner& scanner) {
  const bool square = scanner.accept('[');
  if (!square) scanner.expect('(');
  ItemSize size;
  size.height_px = bounded(scanner, "a height", kMaxSidePx);
  scanner.expect(',');
  size.width_px = bounded(scanner, "a width", kMaxSidePx);
  scanner.expect(',');
  size.num_frames = bounded(scanner, "a number of frames", kMaxFrames);
  scanner.accept(',');
  scanner.expect(square ? ']' : ')');
  return size;
}

SizeBucket scan_entry(Scanner& scanner) {
  const char quote = scanner.accept('"') ? '"' : scanner.accept('\'') ? '\'' : '\0';
  SizeBucket bucket{.size = scan_size(scanner)};
  if (quote != '\0') scanner.expect(quote);
  scanner.expect(':');
  bucket.probability = scanner.number<double>("a probability");
  if (!std::isfinite(bucket.probability)) {
    reject("expected a finite probability, got " + std::to_string(bucket.probability));
  }
  return bucket;
}

bool same_size(const SizeBucket& a, const SizeBucket& b) {
  return a.size.width_px == b.size.width_px && a.size.height_px == b.size.height_px &&
         a.size.num_frames == b.size.num_frames;
}

/// Writes a size as the notation has it: "(height, width, frames)".
std::string bucket_text(const ItemSize& size) {
  return "(" + std::to_string(size.height_px) + ", " + std::to_string(size.width_px) + ", " +
         std::to_string(size.num_frames) + ")";
}

std::int64_t scan_limit(const std::string& key, const JsonView& value) {
  const std::int64_t limit = value.integer().value_or(-1);
  if (limit >= 0 && limit <= kMaxItems) return limit;
  throw UsageError("--random-mm-limit-mm-per-prompt: " + key +
                   ": expected a whole number from 0 to " + std::to_string(kMaxItems) + ", got " +
                   shown(value));
}

}  // namespace

std::vector<SizeBucket> parse_bucket_config(const std::string& text) {
  Scanner scanner(text);
  std::vector<SizeBucket> buckets;
  scanner.expect('{');
  while (!scanner.accept('}')) {
    const SizeBucket bucket = scan_entry(scanner);
    if (std::any_of(buckets.begin(), buckets.end(),
                    [&](const SizeBucket& other) { return same_size(bucket, other); })) {
      reject("expected every size once, got " + bucket_text(bucket.size) + " twice");
    }
    buckets.push_back(bucket);
    if (!scanner.accept(',')) {
      scanner.expect('}');
      break;
    }
  }
  scanner.expect_end();
  return buckets;
}

ItemLimits parse_item_limits(const std::string& json_text) {
  const std::optional<JsonDocument> json = parse_json_object(json_text);
  if (!json) {
    throw UsageError("--random-mm-limit-mm-per-prompt: expected a JSON object, got " +
                     shown_json(json_text));
  }
  ItemLimits limits{.images = std::nullopt, .videos = std::nullopt};
  for (std::size_t i = 0; i < json->root().num_members(); ++i) {
    const std::string key(json->root().key(i));
    if (key != "image" && key != "video") {
      throw UsageError("--random-mm-limit-mm-per-prompt: expected \"image\" and \"video\", got \"" +
                       shown(key) + "\"");
    }
    (key == "image" ? limits.images : limits.videos) = scan_limit(key, json->root().member(i));
  }
  return limits;
}

}  // namespace fovea::cli
