// Every public function while memory runs out: it throws an Error or does its work, nothing else.
#include <dlpack/dlpack.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "fovea/fovea.h"
#include "support/allocations.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

using test::FailingAllocation;

/// With one small graph: verify() loads every graph.
EngineOptions options(int replicas) {
  EngineOptions options{.device = "cpu", .data_parallel_size = replicas, .num_threads = 2};
  options.graphs.encoder_cudagraph_token_budgets = {64};
  return options;
}

std::vector<MediaItem> small_items(const std::string& model) {
  std::vector<MediaItem> items;
  for (const std::string& path : images_in(model + "/images")) items.push_back(image_file(path));
  items.push_back(image_file(FOVEA_TEST_SOURCE_DIR "/tests/media/images/lossless_alpha.webp"));
  items.push_back(video_rgb(std::vector<std::uint8_t>(4 * 64 * 64 * 3, 90), 4, 64, 64, 2.0, "v"));
  return items;
}

/// A file with the pixel values of one grey image of 2 x 2 patches.
void write_pixel_values(const std::string& path) {
  std::string text =
      R"({"pixel_values":{"dtype":"F32","shape":[4,1536],"data_offsets":[0,24576]},)"
      R"("image_grid_thw":{"dtype":"I64","shape":[1,3],"data_offsets":[24576,24600]}})";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  const std::int64_t grid[3] = {1, 2, 2};
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  file += text + std::string(24576, '\0');
  file.append(reinterpret_cast<const char*>(grid), sizeof(grid));
  test::write_text(path, file);
}

/// What the functions are called with. Made while nothing fails: what a host allocates for its
/// arguments is its own business.
struct World {
  /// Loads the plugins of image formats. The libraries that they bring along have constructors of
  /// their own, which the loader runs once: libheif is of no use to the process if they fail.
  std::vector<std::pair<std::string, std::string>> environment = describe_environment();
  std::string model = test::golden_folder("qwen3_vl", "golden.safetensors");
  EngineOptions cpu = options(1);
  EngineOptions two = options(2);
  Engine engine = Engine::load(model, cpu);
  Engine pair = Engine::load(model, two);
  std::vector<MediaItem> items = small_items(model);
  std::vector<Embedding> rows = engine.encode(items);
  MediaItem container = video_path(FOVEA_TEST_SOURCE_DIR "/tests/media/videos/ramp_h264.mp4");
  std::vector<ItemSize> sizes{{640, 480}, {64, 64, 3, Modality::kVideo}};
  test::TemporaryDirectory folder;
  std::string out = folder / "out.st";
  std::string pixels = folder / "pixels.st";
  std::string images = model + "/images";
  std::string frames = model + "/video_frames";
  std::map<std::string, std::string> metadata{{"a", "b"}};
  std::optional<std::vector<bool>> mask = std::vector<bool>(100, true);
  CacheRequest request{"request", {{std::string(40, 'k'), PlaceholderRange(0, 4)}}};
  CacheRequest other{"another", {{std::string(40, 'o'), PlaceholderRange(0, 4)}}};
  std::vector<RequestWindow> windows{{&request, {0, 4}, 0}};
  RowSource source = [this](const std::string&) {
    return RowsView{rows[0].data.data(), 4, rows[0].width, RowDType::kFloat32};
  };
  WindowLimits limits{.compute_budget = 8};
  std::vector<RowBytes> room;
  std::vector<RowBlock> blocks;

  World() {
    write_pixel_values(pixels);
    for (const Embedding& item : rows) {
      room.push_back(item.data);
      blocks.push_back({.data = room.back().data(), .rows = item.rows});
    }
    (void)pair.encode(items);
  }
};

struct PublicCall {
  std::string name;
  /// Gets a path, which it may move from.
  std::function<void(World&, std::string&&)> call;
  /// Of the allocations that a call makes, about every n-th part as many as came before fails: a
  /// call of 10,000 is made some 60 times for 8.
  std::int64_t part = 8;

  // NOLINTNEXTLINE: GoogleTest looks for it
  friend void PrintTo(const PublicCall& call, std::ostream* out) { *out << call.name; }
};

void write_file(std::string path) {
  AtomicFile file(std::move(path));
  file.write({});
  file.flush();
  file.commit();
}

/// An item that comes, goes, and is evicted for another.
void use_cache(World& w) {
  EncoderCache cache(4);
  for (const CacheRequest* request : {&w.request, &w.other}) {
    (void)plan_window(cache, *request, {0, 4}, w.limits);
    cache.allocate(*request, 0);
    (void)cache.lookup(*request, 0);
    (void)cache.cached_items(*request);
    release_consumed(cache, *request, 4);
    cache.release_all(*request);
    (void)cache.freeable_keys();
    (void)cache.drain_evicted();
  }
}

const std::vector<PublicCall>& public_calls() {
  static const std::vector<PublicCall> calls{
      {"load", [](World& w, std::string&&) { (void)Engine::load(w.model, w.cpu); }},
      {"load_replicas", [](World& w, std::string&&) { (void)Engine::load(w.model, w.two); }},
      {"encode", [](World& w, std::string&&) { (void)w.engine.encode(w.items); }},
      {"encode_eagerly",
       [](World& w, std::string&&) { (void)w.engine.encode(w.items, {.enforce_eager = true}); }},
      {"encode_on_replicas", [](World& w, std::string&&) { (void)w.pair.encode(w.items); }},
      {"encode_to_blocks",
       [](World& w, std::string&&) { (void)w.pair.encode(w.items, w.blocks, {}); }},
      {"exchange_with_dlpack",
       [](World& w, std::string&& path) {
         DLManagedTensor* const tensor = to_dlpack(w.blocks.front(), w.rows[0].width, nullptr);
         const auto done = [](DLManagedTensor* made) { made->deleter(made); };
         const std::unique_ptr<DLManagedTensor, decltype(done)> owner(tensor, done);
         (void)precomputed_rows(*tensor, std::move(path));
       }},
      {"encode_container",
       [](World& w, std::string&&) {
         (void)w.engine.encode({&w.container, 1});
       }},
      {"warm_up", [](World& w, std::string&&) { Engine::load(w.model, w.cpu).warm_up(); }, 3},
      {"trim",
       [](World& w, std::string&&) {
         (void)w.engine.trim();
         (void)w.engine.encode({w.items.data(), 1});
       }},
      {"Engine_plan", [](World& w, std::string&&) { (void)w.engine.plan(w.sizes); }},
      {"stats",
       [](World& w, std::string&&) {
         (void)w.engine.stats();
         (void)w.engine.replica_stats();
         (void)w.engine.device();
       }},
      {"plan", [](World& w, std::string&&) { (void)plan(w.model, w.sizes, w.cpu); }},
      {"inspect", [](World& w, std::string&&) { (void)inspect(w.model, w.cpu); }},
      {"describe_environment", [](World&, std::string&&) { (void)describe_environment(); }},
      {"verify", [](World& w, std::string&&) { (void)verify(w.engine, w.model); }, 1},
      {"golden_difference",
       [](World& w, std::string&&) { (void)golden_difference(w.rows.front(), w.model); }},
      {"measure_fma_peak", [](World&, std::string&&) { (void)measure_fma_peak(2, 1e-3); }},
      {"time_tower",
       [](World& w, std::string&&) {
         (void)time_tower(w.engine, {.count = 2, .patches = 16}, 0, 1);
       }},
      {"measure_tower_energy",
       [](World& w, std::string&&) {
         (void)measure_tower_energy(w.engine, {.count = 2, .patches = 16}, 0.1);
       }},
      {"EnergyWatch", [](World& w, std::string&&) { (void)EnergyWatch(w.engine).stop(); }},
      {"save_safetensors",
       [](World& w, std::string&&) { save_safetensors(w.out, w.rows, w.metadata); }},
      {"at", [](World& w, std::string&&) { (void)w.rows.front().at(-1, 0); }},
      {"precomputed", [](World& w, std::string&&) { (void)precomputed(w.rows.front()); }},
      {"output_target", [](World& w, std::string&&) { (void)output_target(w.out); }},
      {"AtomicFile", [](World&, std::string&& path) { write_file(std::move(path)); }},
      {"image_file", [](World&, std::string&& path) { (void)image_file(std::move(path)); }},
      {"images_in", [](World& w, std::string&&) { (void)images_in(w.images); }},
      {"video_path", [](World& w, std::string&&) { (void)video_path(w.frames); }},
      {"pixel_values_file", [](World& w, std::string&&) { (void)pixel_values_file(w.pixels); }},
      {"PlaceholderRange",
       [](World& w, std::string&&) {
         const PlaceholderRange range(0, 100, w.mask);
         (void)range.embed_spans();
         (void)range.embed_range({5, 4});
       }},
      {"EncoderCache", [](World& w, std::string&&) { use_cache(w); }},
      {"gather_rows", [](World& w, std::string&&) { (void)gather_rows(w.windows, 4, w.source); }},
      {"cache_budgets", [](World&, std::string&&) { (void)cache_budgets({.max_item_rows = -1}); }},
      {"shortened", [](World&, std::string&& path) { (void)shortened(path, 20); }},
  };
  return calls;
}

/// What this process has open.
struct Held {
  std::ptrdiff_t threads = 0;
  std::ptrdiff_t files = 0;
};

Held held() {
  const auto entries = [](const char* folder) {
    return std::distance(std::filesystem::directory_iterator(folder), {});
  };
  return {entries("/proc/self/task"), entries("/proc/self/fd")};
}

void expect_held(const Held& expected) {
  // A thread that has been joined may be counted for a moment.
  for (int i = 0; i < 1000 && held().threads != expected.threads; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(held().threads, expected.threads);
  EXPECT_EQ(held().files, expected.files);
}

void expect_same_rows(Engine& engine, std::span<const MediaItem> items,
                      const std::vector<Embedding>& expected) {
  const std::vector<Embedding> rows = engine.encode(items);
  ASSERT_EQ(rows.size(), expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].data, expected[i].data) << i;
}

class AllocationFailure : public ::testing::TestWithParam<PublicCall> {
 protected:
  static void SetUpTestSuite() { world() = std::make_unique<World>(); }
  static void TearDownTestSuite() { world().reset(); }

  /// One for all tests of the suite.
  static std::unique_ptr<World>& world() {
    static std::unique_ptr<World> world;
    return world;
  }

  /// Calls with the nth allocation failing. Whether the call made so many.
  static bool call(std::int64_t nth, FailingAllocation::Lasts lasts) {
    std::string path = world()->out;
    bool happened = true;
    std::optional<Error> error;
    try {
      const FailingAllocation failing(nth, lasts);
      try {
        GetParam().call(*world(), std::move(path));
      } catch (const Error& caught) {
        error = caught;
      }
      happened = failing.happened();
    } catch (const std::exception& other) {
      ADD_FAILURE() << "allocation " << nth << " failed: " << other.what();
    }
    if (error) {
      EXPECT_STRNE(error->what(), "") << nth;
    }
    return happened;
  }
};

TEST_P(AllocationFailure, IsAnErrorAndNothingElse) {
  const Held before = held();
  for (const auto lasts : {FailingAllocation::Lasts::kOnce, FailingAllocation::Lasts::kForever}) {
    for (std::int64_t nth = 1; call(nth, lasts); nth += 1 + nth / GetParam().part) {
    }
  }
  expect_held(before);
  expect_same_rows(world()->engine, world()->items, world()->rows);
  expect_same_rows(world()->pair, world()->items, world()->rows);
}

TEST(AllocationFailureInDestructors, IsNone) {
  const World world;
  std::optional<Engine> engine = Engine::load(world.model, world.two);
  std::optional<AtomicFile> file(world.folder / "never");
  (void)engine->encode(world.items);
  const FailingAllocation failing(1, FailingAllocation::Lasts::kForever);
  engine.reset();
  file.reset();
}

/// Rows of some calls in an encoder cache, in host memory, in that of the device, or moving from
/// the one to the other, as neither holds the rows of a call.
class AllocationFailureOfACache
    : public ::testing::TestWithParam<std::pair<std::int64_t, std::int64_t>> {};

TEST_P(AllocationFailureOfACache, LeavesNoRowsThatNobodyCanEvict) {
  const World world;
  EngineOptions options = world.cpu;
  std::tie(options.encoder_device_cache_size, options.encoder_cache_bytes) = GetParam();
  Engine engine = Engine::load(world.model, options);
  std::vector<MediaItem> items = world.items;
  items.push_back(items.back());
  const std::vector<Embedding> expected = engine.encode(items, {.use_cache = false});
  std::int64_t num_failed = 0;
  bool happened = true;
  for (std::int64_t nth = 1; happened; nth += 1 + nth / 16) {
    {
      const FailingAllocation failing(nth, FailingAllocation::Lasts::kOnce);
      try {
        (void)engine.encode(items);
      } catch (const Error&) {
        ++num_failed;
      }
      happened = failing.happened();
    }
    const EncoderCacheStats stats = engine.stats().encoder_cache;
    ASSERT_EQ(stats.freeable_bytes, stats.bytes) << nth;
    ASSERT_EQ(stats.waiting, 0) << nth;
    const std::vector<Embedding> rows = engine.encode(items);
    for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i].data, expected[i].data) << nth;
  }
  EXPECT_GT(num_failed, 10);
  const bool is_small =
      options.encoder_device_cache_size < 1 << 20 && options.encoder_cache_bytes < 1 << 20;
  EXPECT_EQ(engine.stats().encoder_cache.device.evictions > 0, is_small);
}

INSTANTIATE_TEST_SUITE_P(In, AllocationFailureOfACache,
                         ::testing::Values(std::pair(0, 1 << 26), std::pair(1 << 26, 0),
                                           std::pair(40'000, 80'000)));

INSTANTIATE_TEST_SUITE_P(Of, AllocationFailure, ::testing::ValuesIn(public_calls()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace fovea
