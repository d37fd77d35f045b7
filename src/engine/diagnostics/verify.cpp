// Self-checks of a loaded engine: things that must hold for any checkpoint, and reference rows
// where there are some.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <random>

#include "core/boundary.h"
#include "core/check.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "engine/diagnostics/compare.h"
#include "engine/diagnostics/graph_checks.h"
#include "engine/engine_impl.h"
#include "fovea/diagnostics.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

/// Largest relative L2 difference of float32 arithmetic against a float32 reference; the reference
/// implementations of the golden data agree among themselves to 1e-5.
constexpr double kFloat32Tolerance = 1e-4;
/// As above with GEMMs of 8 bits: a sanity bound, not a promise of quality.
constexpr double kQuantizedTolerance = 2e-1;

/// RGB pixels with structure at several scales, different for every seed.
std::vector<std::uint8_t> random_rgb(std::int64_t pixels, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(pixels * 3));
  for (std::size_t i = 0; i < rgb.size(); ++i) {
    rgb[i] = static_cast<std::uint8_t>((i / 97 + (random() & 63u) + seed * 31u) & 255u);
  }
  return rgb;
}

MediaItem random_image(std::int64_t width, std::int64_t height, unsigned seed) {
  return image_rgb(random_rgb(width * height, seed), width, height,
                   cat("random ", width, "x", height));
}

/// Images of several sizes, and last a video where the model takes videos.
std::vector<MediaItem> random_items(const GraphSpec& spec) {
  std::vector<MediaItem> items;
  unsigned seed = 1;
  for (const auto& [width, height] :
       {std::pair{320, 240}, {64, 64}, {640, 480}, {100, 333}, {64, 64}, {656, 64}, {31, 57}}) {
    items.push_back(random_image(width, height, seed++));
  }
  if (std::ranges::find(spec.modalities, Modality::kVideo) != spec.modalities.end()) {
    constexpr std::int64_t kFrames = 5;
    items.push_back(
        video_rgb(random_rgb(kFrames * 96 * 64, seed), kFrames, 96, 64, 2.0, "random video"));
  }
  return items;
}

/// What is verified is computed, never remembered.
std::vector<Embedding> encode_anew(Engine& engine, std::span<const MediaItem> items) {
  return engine.encode(items, {.use_cache = false});
}

/// Encodes every item in a call of its own.
std::vector<Embedding> encode_alone(Engine& engine, std::span<const MediaItem> items) {
  std::vector<Embedding> rows;
  for (const MediaItem& item : items) {
    rows.push_back(std::move(engine.encode({&item, 1}, {.enforce_eager = true}).front()));
  }
  return rows;
}

Check check_finite(std::span<const Embedding> rows) {
  const auto broken = std::ranges::find_if_not(rows, &Embedding::is_finite);
  if (broken == rows.end()) return {"rows are finite", true, "no infinity, no NaN"};
  return {"rows are finite", false,
          cat(broken->name, " has infinite or NaN values: weights or processor file do not fit")};
}

/// The images and, for a model that takes videos, the video that a golden directory has reference
/// rows for.
std::vector<MediaItem> golden_items(const fs::path& golden, bool takes_videos) {
  FOVEA_CHECK(
      fs::is_regular_file(golden / "golden.safetensors") && fs::is_directory(golden / "images"),
      kNotFound, golden.string(), ": expected a directory with golden.safetensors and images/");
  std::vector<MediaItem> items;
  for (const std::string& name : list_directory((golden / "images").string())) {
    items.push_back(image_file((golden / "images" / name).string()));
  }
  if (const fs::path frames = golden / "video_frames"; takes_videos && fs::is_directory(frames)) {
    items.push_back(video_path(frames.string()));
  }
  return items;
}

std::vector<Check> check_golden(Engine& engine, const std::vector<MediaItem>& items,
                                const std::string& golden, double tolerance) {
  std::vector<Check> checks;
  for (const Embedding& item : encode_anew(engine, items)) {
    const auto difference = golden_difference(item, golden);
    if (!difference) continue;
    checks.push_back({cat("golden ", fs::path(item.name).filename().string()),
                      *difference <= tolerance,
                      cat("relative difference ", *difference, ", allowed ", tolerance)});
  }
  if (checks.empty()) {
    checks.push_back({"golden", false, cat(golden, ": no image has reference rows")});
  }
  return checks;
}

void append(std::vector<Check>& all, std::vector<Check> more) {
  std::ranges::move(more, std::back_inserter(all));
}

/// Units of items that run apart from each other give the rows of whole items.
Check check_units(Replica& replica, std::span<const PreparedItem* const> items,
                  std::span<const Embedding> rows, double tolerance) {
  GraphManagerOptions each_alone{.max_num_batched_tokens = 1, .packing = PackingPolicy::kUnits};
  each_alone.user.cudagraph_mm_encoder = false;
  each_alone.reuse_units = false;
  Replica apart(replica.model(), replica.device(), each_alone);
  return check_equal("units equal whole items", compare(encode_on(apart, items, {}), rows),
                     tolerance);
}

/// What each replica does by itself: all of several give the rows of the batch they shared, and
/// each graph gives what an eager run gives.
std::vector<Check> check_replicas(ReplicaGroup& replicas, std::span<const PreparedMedia> prepared,
                                  std::span<const Embedding> rows, double tolerance) {
  std::vector<const PreparedItem*> items;
  for (const PreparedMedia& one : prepared) items.push_back(&one.item);
  std::vector<Check> checks{check_units(replicas[0], items, rows, tolerance)};
  for (std::size_t rank = 0; rank < replicas.size(); ++rank) {
    const std::string place = replicas.size() == 1 ? "" : cat(", replica ", rank);
    if (replicas.size() > 1) {
      checks.push_back(check_equal(cat("one equals all", place),
                                   compare(encode_on(replicas[rank], items, {}), rows), tolerance));
    }
    append(checks, check_graphs(replicas[rank], place, tolerance));
  }
  return checks;
}

/// What earlier batches, or nothing at all, left in memory must not show: small after large in the
/// same graphs, and every batch over memory full of NaN.
std::vector<Check> check_leaks(Engine& engine, ReplicaGroup& replicas, double tolerance) {
  const auto fill = [](Replica& replica) { replica.graphs().fill_memory_with_nan(); };
  const std::vector<MediaItem> small{random_image(64, 64, 21)};
  const std::vector<MediaItem> large{random_image(640, 480, 22), random_image(320, 240, 23)};
  const std::vector<Embedding> first = encode_anew(engine, small);
  const std::vector<Embedding> large_first = encode_anew(engine, large);
  std::vector<Check> checks;
  checks.push_back(
      check_equal("small, large, small", compare(encode_anew(engine, small), first), tolerance));
  replicas.for_each(fill);
  checks.push_back(check_equal("large over memory full of NaN",
                               compare(encode_anew(engine, large), large_first), tolerance));
  replicas.for_each(fill);
  checks.push_back(check_equal("small over memory full of NaN",
                               compare(encode_anew(engine, small), first), tolerance));
  return checks;
}

/// Rows of the same checkpoint on one device, in its own precision.
std::vector<Embedding> encode_elsewhere(const std::string& directory, EngineOptions options,
                                        const std::string& device,
                                        std::span<const MediaItem> items) {
  options.device = device;
  options.data_parallel_size = 0;
  options.quantization = Quantization::kNone;
  options.dtype_compute = ComputeDType::kAuto;
  options.graphs.cudagraph_mm_encoder = false;
  options.encoder_cache_bytes = 0;
  options.encoder_device_cache_size = 0;
  options.shared_rows.clear();
  Engine engine = Engine::load(directory, options);
  return engine.encode(items);
}

/// The same checkpoint on the CPU gives the same rows up to the rounding of this device, which more
/// is said about where that is large.
std::vector<Check> check_against_cpu(const std::string& directory, const EngineOptions& options,
                                     std::span<const MediaItem> items,
                                     std::span<const Embedding> rows, std::int64_t hidden,
                                     double tolerance) {
  const std::vector<Embedding> cpu = encode_elsewhere(directory, options, "cpu", items);
  std::vector<Check> checks{check_equal("equals the CPU", compare(rows, cpu), tolerance)};
  if (options.quantization == Quantization::kNone) return checks;
  const std::vector<Embedding> native =
      encode_elsewhere(directory, options, replica_devices(options).front(), items);
  const ReferenceRows references[] = {{"bfloat16", native}, {"float32", cpu}};
  append(checks, check_quantization("quantized", rows, references, hidden, tolerance));
  return checks;
}

/// What less precision changes where arithmetic is float32 otherwise.
std::vector<Check> check_against_float32(const std::string& directory, const EngineOptions& options,
                                         std::span<const MediaItem> items,
                                         std::span<const Embedding> rows, std::int64_t hidden,
                                         double tolerance) {
  const std::vector<Embedding> native = encode_elsewhere(directory, options, "cpu", items);
  const ReferenceRows references[] = {{"float32", native}};
  const bool is_quantized = options.quantization != Quantization::kNone;
  return check_quantization(is_quantized ? "quantized" : "bfloat16", rows, references, hidden,
                            tolerance);
}

/// Whether rows have less precision than the float32 of a CPU.
bool is_coarse(const EngineOptions& options) {
  return options.quantization != Quantization::kNone ||
         options.dtype_compute == ComputeDType::kBFloat16;
}

/// Largest difference from rows in float32, of the reference or of the CPU.
double float32_tolerance(const EngineOptions& options, const ModelReport& model, bool on_host) {
  if (options.quantization != Quantization::kNone) return kQuantizedTolerance;
  return on_host && !is_coarse(options) ? kFloat32Tolerance : model.bfloat16_tolerance;
}

}  // namespace

std::vector<Check> verify(Engine& engine, const std::string& golden, const CallBounds& bounds) try {
  const CallScope scope(bounds, "verify");
  Engine::Impl& impl = *engine.impl_;
  std::vector<MediaItem> reference;
  if (!golden.empty()) reference = golden_items(golden, impl.report.videos);
  // The CPU computes a row from its own inputs in a fixed order; a GPU library may choose another
  // kernel for another number of rows.
  const bool exact = impl.on_host();
  const double from_float32 = float32_tolerance(impl.options, impl.report, exact);
  const double tolerance = exact ? 0.0 : from_float32;
  engine.warm_up();
  const std::vector<MediaItem> items = random_items(impl.model().graph_spec());
  const std::vector<Embedding> alone = encode_alone(engine, items);
  const std::vector<Embedding> batch = encode_anew(engine, items);
  const std::vector<Embedding> eager = engine.encode(items, {.enforce_eager = true});

  std::vector<Check> checks;
  checks.push_back(check_finite(batch));
  checks.push_back(check_equal("replay equals eager", compare(batch, eager), tolerance));
  if (items.back().modality == Modality::kVideo) {
    checks.push_back(check_equal("replayed video equals eager",
                                 compare(std::span(batch).last(1), std::span(eager).last(1)),
                                 tolerance));
  }
  checks.push_back(check_equal("batch equals alone", compare(batch, alone), tolerance));
  checks.push_back(check_equal("second run equals first",
                               compare(encode_anew(engine, items), batch), tolerance));
  std::vector<MediaItem> reversed(items.rbegin(), items.rend());
  std::vector<Embedding> back = encode_anew(engine, reversed);
  std::ranges::reverse(back);
  checks.push_back(check_equal("order does not matter", compare(back, batch), tolerance));
  append(checks, check_leaks(engine, *impl.replicas, tolerance));
  const std::vector<PreparedMedia> prepared =
      prepare_all(impl.prepare_context(), items, impl.decode_pool);
  append(checks, check_replicas(*impl.replicas, prepared, batch, tolerance));
  const std::int64_t hidden = impl.model().graph_spec().main_width;
  if (!exact) {
    append(checks,
           check_against_cpu(impl.directory, impl.options, items, batch, hidden, tolerance));
  } else if (is_coarse(impl.options)) {
    append(checks,
           check_against_float32(impl.directory, impl.options, items, batch, hidden, from_float32));
  }
  if (!golden.empty()) {
    append(checks, check_golden(engine, reference, golden, from_float32));
  }
  return checks;
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
