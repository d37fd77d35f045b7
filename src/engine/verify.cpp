// Self-checks of a loaded engine: things that must hold for any checkpoint, and reference rows
// where there are some.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>

#include "core/check.h"
#include "engine/engine_impl.h"
#include "fovea/diagnostics.h"

namespace fovea {

namespace {

/// Largest relative L2 difference of float32 arithmetic against a float32 reference; the reference
/// implementations of the golden data agree among themselves to 1e-5.
constexpr double kFloat32Tolerance = 1e-4;
/// As above where intermediates are bfloat16, 8 bits of mantissa through some 30 blocks.
constexpr double kBFloat16Tolerance = 2e-2;

/// A picture with structure at several scales, different for every seed.
MediaItem random_picture(std::int64_t width, std::int64_t height, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(width * height * 3));
  for (std::size_t i = 0; i < rgb.size(); ++i) {
    rgb[i] = static_cast<std::uint8_t>((i / 97 + (random() & 63u) + seed * 31u) & 255u);
  }
  return image_rgb(std::move(rgb), width, height, cat("random ", width, "x", height));
}

std::vector<MediaItem> random_items() {
  std::vector<MediaItem> items;
  unsigned seed = 1;
  for (const auto& [width, height] :
       {std::pair{320, 240}, {64, 64}, {640, 480}, {100, 333}, {64, 64}, {512, 128}, {31, 57}}) {
    items.push_back(random_picture(width, height, seed++));
  }
  return items;
}

/// Largest relative L2 difference over the items, and whether all bits are equal.
struct Difference {
  bool same_bits = true;
  double relative = 0;
};

Difference compare(std::span<const Embedding> a, std::span<const Embedding> b) {
  Difference result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    FOVEA_CHECK(a[i].rows == b[i].rows && a[i].width == b[i].width, kInternal, a[i].name, ": ",
                a[i].rows, "x", a[i].width, " against ", b[i].rows, "x", b[i].width);
    if (a[i].data == b[i].data) continue;
    result.same_bits = false;
    double difference = 0;
    double reference = 0;
    for (std::int64_t r = 0; r < a[i].rows; ++r) {
      for (std::int64_t c = 0; c < a[i].width; ++c) {
        const double expected = b[i].at(r, c);
        difference += (a[i].at(r, c) - expected) * (a[i].at(r, c) - expected);
        reference += expected * expected;
      }
    }
    const double relative = std::sqrt(difference / std::max(reference, 1e-300));
    result.relative = std::max(result.relative, std::isfinite(relative) ? relative : INFINITY);
  }
  return result;
}

/// Encodes every item in a call of its own.
std::vector<Embedding> encode_alone(Engine& engine, std::span<const MediaItem> items) {
  std::vector<Embedding> rows;
  for (const MediaItem& item : items) {
    rows.push_back(std::move(engine.encode({&item, 1}, {.enforce_eager = true}).front()));
  }
  return rows;
}

/// @param tolerance 0: bits must be equal.
Check check_equal(std::string name, const Difference& difference, double tolerance) {
  const bool passed = difference.same_bits || difference.relative <= tolerance;
  return {std::move(name), passed,
          difference.same_bits
              ? "equal bits"
              : cat("relative difference ", difference.relative, ", allowed ", tolerance)};
}

std::vector<Check> check_golden(Engine& engine, const std::string& golden, double tolerance) {
  namespace fs = std::filesystem;
  std::vector<MediaItem> items;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(golden) / "images")) {
    items.push_back(image_file(entry.path().string()));
  }
  std::ranges::sort(items, {}, &MediaItem::name);
  if (const fs::path frames = fs::path(golden) / "video_frames"; fs::is_directory(frames)) {
    items.push_back(video_path(frames.string()));
  }
  std::vector<Check> checks;
  for (const Embedding& item : engine.encode(items)) {
    const auto difference = golden_difference(item, golden);
    if (!difference) continue;
    checks.push_back({cat("golden ", fs::path(item.name).filename().string()),
                      *difference <= tolerance,
                      cat("relative difference ", *difference, ", allowed ", tolerance)});
  }
  if (checks.empty()) {
    checks.push_back({"golden", false, cat(golden, ": no picture has reference rows")});
  }
  return checks;
}

}  // namespace

std::vector<Check> verify(Engine& engine, const std::string& golden) {
  // The CPU computes a row from its own inputs in a fixed order; a GPU library may choose another
  // kernel for another number of rows.
  const bool exact = engine.device().starts_with("cpu");
  const double tolerance = exact ? 0.0 : kBFloat16Tolerance;
  const std::vector<MediaItem> items = random_items();
  const std::vector<Embedding> alone = encode_alone(engine, items);
  const std::vector<Embedding> batch = engine.encode(items);
  const std::vector<Embedding> eager = engine.encode(items, {.enforce_eager = true});

  std::vector<Check> checks;
  checks.push_back(check_equal("replay equals eager", compare(batch, eager), tolerance));
  checks.push_back(check_equal("batch equals alone", compare(batch, alone), tolerance));
  checks.push_back(
      check_equal("second run equals first", compare(engine.encode(items), batch), tolerance));
  std::vector<MediaItem> reversed(items.rbegin(), items.rend());
  std::vector<Embedding> back = engine.encode(reversed);
  std::ranges::reverse(back);
  checks.push_back(check_equal("order does not matter", compare(back, batch), tolerance));
  if (golden.empty()) return checks;
  for (Check& check :
       check_golden(engine, golden, exact ? kFloat32Tolerance : kBFloat16Tolerance)) {
    checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace fovea
