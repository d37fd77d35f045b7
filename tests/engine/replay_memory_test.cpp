// Replays of mixed batches, one after the other: memory stays as it is, and a batch gives the same
// bits whatever ran before it. Runs on every kind of device of this machine.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <ostream>
#include <random>

#include "engine/backend.h"
#include "engine/replicas/replica_session.h"
#include "fovea/engine.h"
#include "models/load_model.h"
#include "support/golden.h"
#include "support/property.h"

namespace fovea {
namespace {

using Batch = std::vector<PreparedItem>;

/// Free memory of the first GPU as the driver sees it, whoever allocated the rest; absent without
/// one. The driver is asked directly: a Device counts only what it handed out itself.
std::optional<std::size_t> free_gpu_bytes() {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return std::nullopt;
  const auto call = [&](const char* name, auto... arguments) {
    using Function = int (*)(decltype(arguments)...);
    const auto function = reinterpret_cast<Function>(::dlsym(driver, name));
    return function != nullptr && function(arguments...) == 0;
  };
  void* context = nullptr;
  std::size_t free = 0;
  std::size_t total = 0;
  if (!call("cuDevicePrimaryCtxRetain", &context, 0)) return std::nullopt;
  const bool known = call("cuCtxPushCurrent_v2", context) && call("cuMemGetInfo_v2", &free, &total);
  (void)call("cuCtxPopCurrent_v2", &context);
  (void)call("cuDevicePrimaryCtxRelease_v2", 0);
  return known ? std::optional(free) : std::nullopt;
}

struct ReplayCase {
  std::string family;
  std::string device;
  int replays;
  std::int64_t largest_side_px;

  friend void PrintTo(const ReplayCase& test, std::ostream* out) {
    *out << test.family << " on " << test.device;
  }
};

class ReplayMemory : public ::testing::TestWithParam<ReplayCase> {
 protected:
  void SetUp() override {
    if (GetParam().device == "cuda" && cuda_status().starts_with("not used")) {
      GTEST_SKIP() << cuda_status();
    }
    const std::string folder = test::golden_folder(GetParam().family, "model.safetensors");
    const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
    backend_ = make_backend(GetParam().device, {.num_threads = 2});
    const std::unique_ptr<Stream> stream = backend_.device->create_stream();
    model_ =
        load_model(files, {}, checkpoint::WeightSource::open(folder), *backend_.device, *stream);
    stream->synchronize();
    replica_ = std::make_unique<Replica>(*model_, *backend_.device,
                                         GraphManagerOptions{.max_num_batched_tokens = 2048});
    replica_->graphs().capture();
    session_ = std::make_unique<ReplicaSession>(*replica_);
  }

  /// One to twelve images of random sizes and bytes.
  [[nodiscard]] Batch random_batch() {
    Batch batch(std::uniform_int_distribution<std::size_t>(1, 12)(random_));
    std::uniform_int_distribution<std::int64_t> side(32, GetParam().largest_side_px);
    for (PreparedItem& item : batch) {
      item.plan = model_->processor().plan_image(side(random_), side(random_));
      item.pixels = test::random_bytes(item.plan.pixel_bytes, random_);
    }
    return batch;
  }

  [[nodiscard]] std::vector<RowBytes> encode(const Batch& batch) {
    std::vector<Embedding> rows(batch.size());
    std::vector<TowerItem> items;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      items.push_back({&batch[i], {.result = &rows[i], .dtype = RowDType::kBFloat16}});
    }
    session_->begin(items, {});
    session_->finish();
    std::vector<RowBytes> bytes;
    for (Embedding& one : rows) bytes.push_back(std::move(one.data));
    return bytes;
  }

  std::mt19937 random_{11};
  Backend backend_;
  std::unique_ptr<EncoderGraphModel> model_;
  std::unique_ptr<Replica> replica_;
  std::unique_ptr<ReplicaSession> session_;
};

TEST_P(ReplayMemory, MixedReplaysGrowNothingAndForgetNothing) {
  std::vector<Batch> batches;
  for (int i = 0; i < 24; ++i) batches.push_back(random_batch());
  std::vector<std::vector<RowBytes>> first;
  for (const Batch& batch : batches) first.push_back(encode(batch));
  // The two row memories take turns: now each sees the batches that the other one has seen.
  (void)encode(batches.front());
  for (const Batch& batch : batches) (void)encode(batch);
  const std::size_t allocated = backend_.device->allocated_bytes();
  const GraphMemoryReport memory = replica_->graphs().memory();
  const std::optional<std::size_t> free = free_gpu_bytes();

  for (int replay = 0; replay < GetParam().replays; ++replay) {
    const std::size_t index = random_() % batches.size();
    if (replay % 20 == 10) replica_->graphs().fill_memory_with_nan();
    ASSERT_EQ(encode(batches[index]), first[index]) << "replay " << replay << ", batch " << index;
  }
  EXPECT_EQ(replica_->graphs().stats().graph_misses, 0);
  EXPECT_EQ(replica_->graphs().stats().graph_partial, 0);
  EXPECT_EQ(backend_.device->allocated_bytes(), allocated);
  EXPECT_EQ(replica_->graphs().memory().graphs(), memory.graphs());
  EXPECT_EQ(replica_->graphs().memory().host, memory.host);
  if (GetParam().device == "cuda") {
    ASSERT_TRUE(free.has_value());
    EXPECT_EQ(free_gpu_bytes(), free);
  }
}

TEST(BackgroundCaptureOnAGpu, AnswersComeBeforeTheLastGraph) {
  if (cuda_status().starts_with("not used")) GTEST_SKIP() << cuda_status();
  const std::string folder = test::golden_folder("qwen3_vl", "model.safetensors");
  Engine engine = Engine::load(folder, {.device = "cuda"});
  std::future<void> captured = std::async(std::launch::async, [&] { engine.warm_up(); });
  const MediaItem item =
      image_rgb(std::vector<std::uint8_t>(64 * 64 * 3, 90), 64, 64, "a grey image");
  const Embedding meanwhile = engine.encode({&item, 1}).front();
  const std::size_t num_graphs = engine.stats().graphs.size();
  captured.get();
  EXPECT_LT(num_graphs, engine.stats().graphs.size());
  EXPECT_EQ(engine.encode({&item, 1}).front().rows, meanwhile.rows);
}

INSTANTIATE_TEST_SUITE_P(Devices, ReplayMemory,
                         ::testing::Values(ReplayCase{"qwen3_vl", "cpu", 30, 350},
                                           ReplayCase{"qwen3_vl", "cuda", 1000, 700},
                                           ReplayCase{"deepseek_ocr", "cuda", 1000, 700}),
                         [](const auto& test) {
                           return test.param.family + "_" + test.param.device;
                         });

}  // namespace
}  // namespace fovea
