// Images that two GPUs of one process compute together: the rows of one GPU but for roundings, and
// an error of all where one cannot go on. Skipped with less.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "checkpoint/hf_config.h"
#include "core/check.h"
#include "device/cuda_plugin.h"
#include "engine/backend.h"
#include "engine/cached/noise.h"
#include "engine/diagnostics/compare.h"
#include "engine/replicas/group_session.h"
#include "engine/rows/gpu_room.h"
#include "fovea/fovea.h"
#include "fovea/tower/checkpoint/weight_source.h"
#include "graph/team_table.h"
#include "models/load_model.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

/// GEMMs of other sizes may choose other kernels: some roundings of 2^-9.
constexpr double kMostRounding = 0.02;

Engine load_team(const std::string& family, const std::string& device) {
  EngineOptions options;
  options.device = device;
  options.team_patches = 1;
  return Engine::load(test::golden_folder(family, "golden.safetensors"), options);
}

bool has_two_gpus() { return usable_gpus(find_cuda()).size() >= 2; }

TEST(TeamOnGpus, HasTheRowsOfOneGpu) {
  if (!has_two_gpus()) GTEST_SKIP() << "needs two GPUs";
  for (const char* family : {"qwen3_vl", "glm4v", "kimi_vl", "mistral3", "paddleocr_vl"}) {
    if (test::golden_folders(family, "golden.safetensors").empty()) continue;
    SCOPED_TRACE(family);
    Engine alone = load_team(family, "cuda:0");
    Engine both = load_team(family, "cuda:0,cuda:1");
    std::int64_t count = 0;
    for (const auto& [width, height] : {std::pair{1024, 1024}, {640, 500}, {64, 64}, {96, 800}}) {
      const MediaItem item = test::noise(width, height, 1);
      const Embedding expected = alone.encode({&item, 1}, {.dtype = RowDType::kFloat32})[0];
      for (int repetition = 0; repetition < 3; ++repetition) {
        const Embedding rows = both.encode({&item, 1}, {.dtype = RowDType::kFloat32})[0];
        ASSERT_EQ(rows.rows, expected.rows);
        EXPECT_LT(compare({&rows, 1}, {&expected, 1}).relative, kMostRounding)
            << width << "x" << height;
        EXPECT_EQ(both.stats().miss_reasons.at("team"), ++count);
      }
    }
  }
}

TEST(TeamOnGpus, RowsGoToEitherGpu) {
  if (!has_two_gpus()) GTEST_SKIP() << "needs two GPUs";
  Engine both = load_team("qwen3_vl", "cuda:0,cuda:1");
  const MediaItem item = test::noise(1024, 1024, 1);
  const EncodeOptions how{.dtype = RowDType::kFloat32};
  const Embedding expected = both.encode({&item, 1}, how)[0];
  for (const int gpu : {0, 1, 0}) {
    const Backend backend = make_backend(cat("cuda:", gpu));
    const auto stream = backend.device->adopt_stream(gpu, nullptr);
    const test::GpuRoom room(*backend.device, gpu, expected.rows, expected.width,
                             RowDType::kFloat32, 8);
    (void)both.encode({&item, 1}, {&room.block(), 1}, {.device = gpu}, how);
    room.expect_rows(expected, *stream);
  }
  EXPECT_EQ(both.stats().miss_reasons.at("team"), 4);
}

/// As in tests/ops/team_attention_test.cpp.
[[maybe_unused]] const int kAreSet =
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0) | setenv("CUDA_MODULE_LOADING", "EAGER", 0);

/// Replicas of the tiny Qwen3-VL on the first GPU, as a team.
class TeamOnOneGpu {
 public:
  explicit TeamOnOneGpu(int size) {
    const std::string folder = test::golden_folder("qwen3_vl", "golden.safetensors");
    const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
    std::vector<std::unique_ptr<Replica>> replicas;
    for (int rank = 0; rank < size; ++rank) {
      const Backend& backend = backends_.emplace_back(make_backend("cuda:0"));
      const auto stream = backend.device->create_copy_stream();
      models_.push_back(
          load_model(files, {}, checkpoint::WeightSource::open(folder), *backend.device, *stream));
      stream->synchronize();
      replicas.push_back(
          std::make_unique<Replica>(*models_.back(), *backend.device, GraphManagerOptions{}));
    }
    group_ = std::make_unique<ReplicaGroup>(std::move(replicas), 1);
    session_ = std::make_unique<GroupSession>(*group_);
  }

  [[nodiscard]] ItemPlan plan(std::int64_t width_px, std::int64_t height_px) const {
    return models_.front()->processor().plan_image(width_px, height_px);
  }
  [[nodiscard]] Embedding encode(const PreparedItem& item) {
    Embedding rows;
    const TowerItem all{&item, {&rows}};
    session_->begin({&all, 1}, {.enforce_eager = true});
    session_->finish();
    return rows;
  }
  [[nodiscard]] std::vector<ReplicaStats> stats() const { return group_->stats(); }

 private:
  std::vector<Backend> backends_;
  std::vector<std::unique_ptr<EncoderGraphModel>> models_;
  std::unique_ptr<ReplicaGroup> group_;
  std::unique_ptr<GroupSession> session_;
};

TEST(TeamOnGpus, MembersMayShareAGpu) {
  if (usable_gpus(find_cuda()).empty()) GTEST_SKIP() << "needs a GPU";
  TeamOnOneGpu alone(1);
  TeamOnOneGpu two(2);
  std::mt19937 random(1);
  for (const auto& [width, height] : {std::pair{1024, 1024}, {640, 500}, {64, 64}, {96, 800}}) {
    PreparedItem item{.plan = alone.plan(width, height)};
    item.pixels = test::random_bytes(item.plan.pixel_bytes, random);
    const Embedding expected = alone.encode(item);
    for (int repetition = 0; repetition < 3; ++repetition) {
      const Embedding rows = two.encode(item);
      ASSERT_EQ(rows.rows, expected.rows);
      EXPECT_LT(compare({&rows, 1}, {&expected, 1}).relative, kMostRounding)
          << width << "x" << height;
    }
  }
  for (const ReplicaStats& replica : two.stats()) EXPECT_EQ(replica.stats.sub_batches, 12);
}

/// What waits for a member that does not come gives up after a second, and the next team is new.
TEST(TeamOnGpus, AMemberThatDoesNotComeIsAnErrorWithinASecond) {
  if (usable_gpus(find_cuda()).empty()) GTEST_SKIP() << "needs a GPU";
  const Backend first = make_backend("cuda:0");
  const Backend second = make_backend(has_two_gpus() ? "cuda:1" : "cuda:0");
  Device* const devices[] = {first.device.get(), second.device.get()};
  const std::unique_ptr<TeamTable> table = TeamTable::make(devices);
  ASSERT_NE(table, nullptr) << "the GPUs do not reach each other";
  const std::unique_ptr<Stream> streams[] = {first.device->create_stream(),
                                             second.device->create_stream()};
  const Buffer arenas[] = {first.device->allocate(256), second.device->allocate(256)};
  for (const bool comes : {true, false, true}) {
    table->open();
    Team teams[2];
    std::thread other([&] { teams[1] = table->join(1, arenas[1].data()); });
    teams[0] = table->join(0, arenas[0].data());
    other.join();
    const auto begin = std::chrono::steady_clock::now();
    streams[0]->meet(teams[0]);
    streams[0]->meet(teams[0]);
    if (comes) {
      streams[1]->meet(teams[1]);
      streams[1]->meet(teams[1]);
    }
    for (const auto& stream : streams) stream->synchronize();
    if (comes) {
      table->check();
    } else {
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1900));
      test::expect_error(ErrorCode::kUnavailable, "could not go on", [&] { table->check(); });
    }
  }
}

}  // namespace
}  // namespace fovea
