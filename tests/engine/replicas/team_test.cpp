// Images that all replicas of a CPU engine compute together: the bits of one replica, whatever the
// number of members, the family and where rows go.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "checkpoint/hf_config.h"
#include "engine/backend.h"
#include "engine/cached/noise.h"
#include "engine/replicas/group_session.h"
#include "fovea/fovea.h"
#include "fovea/tower/checkpoint/weight_source.h"
#include "graph/team_table.h"
#include "models/load_model.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/property.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

using test::noise;

EngineOptions options_of(int replicas, std::int64_t team_patches) {
  EngineOptions options;
  options.device = "cpu";
  options.data_parallel_size = replicas;
  options.team_patches = team_patches;
  options.num_threads = replicas;
  return options;
}

Engine load(const std::string& family, int replicas, std::int64_t team_patches = 1) {
  return Engine::load(test::golden_folder(family, "golden.safetensors"),
                      options_of(replicas, team_patches));
}

/// A tower with eight heads and random weights.
Engine load_eight_heads(int replicas) {
  const test::TemporaryDirectory folder;
  std::ofstream(folder / "config.json") << R"({
    "architectures": ["Qwen3VLForConditionalGeneration"], "model_type": "qwen3_vl",
    "vision_config": {"depth": 3, "hidden_size": 128, "intermediate_size": 144, "num_heads": 8,
                      "num_position_embeddings": 64, "out_hidden_size": 32, "patch_size": 16,
                      "deepstack_visual_indexes": [1], "in_channels": 3, "spatial_merge_size": 2,
                      "temporal_patch_size": 2, "hidden_act": "gelu_pytorch_tanh"}})";
  EngineOptions options = options_of(replicas, 1);
  options.dummy_weights = true;
  return Engine::load(folder.path(), options);
}

std::int64_t computed_together(const Engine& engine) {
  const Stats stats = engine.stats();
  const auto found = stats.miss_reasons.find("team");
  return found == stats.miss_reasons.end() ? 0 : found->second;
}

void expect_same(const Embedding& got, const Embedding& expected) {
  ASSERT_FALSE(got.error);
  EXPECT_EQ(got.rows, expected.rows);
  EXPECT_EQ(got.data, expected.data) << got.name;
}

/// Images whose rows divide evenly and not, and one with fewer rows than a team has room for.
std::vector<MediaItem> images() {
  return {noise(320, 240, 1), noise(64, 64, 2), noise(100, 333, 3), noise(512, 512, 4)};
}

TEST(Team, GivesTheRowsOfOneReplica) {
  Engine one = load_eight_heads(1);
  for (const int replicas : {2, 4, 8}) {
    SCOPED_TRACE(replicas);
    Engine team = load_eight_heads(replicas);
    std::int64_t count = 0;
    for (const MediaItem& image : images()) {
      expect_same(team.encode({&image, 1})[0], one.encode({&image, 1})[0]);
      EXPECT_EQ(computed_together(team), ++count);
    }
    for (const ReplicaStats& replica : team.replica_stats()) {
      EXPECT_EQ(replica.stats.sub_batches, count) << "a part of every image";
    }
  }
}

class TeamOfFamilies : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Families, TeamOfFamilies,
                         ::testing::Values("qwen3_vl", "glm4v", "kimi_vl", "mistral3",
                                           "paddleocr_vl", "glm_ocr"),
                         [](const auto& family) { return std::string(family.param); });

TEST_P(TeamOfFamilies, GivesTheRowsOfOneReplica) {
  if (test::golden_folders(GetParam(), "golden.safetensors").empty()) {
    GTEST_SKIP() << "not in the selection of the repository";
  }
  Engine one = load(GetParam(), 1);
  Engine two = load(GetParam(), 2);
  for (const MediaItem& image : images()) {
    expect_same(two.encode({&image, 1})[0], one.encode({&image, 1})[0]);
  }
  EXPECT_EQ(computed_together(two), 4);
}

TEST(Team, ComputesWhatIsLeftWhenAllHaveEquallyMany) {
  Engine one = load("qwen3_vl", 1);
  Engine two = load("qwen3_vl", 2);
  std::vector<MediaItem> items = images();
  items.push_back(noise(160, 160, 5));
  const std::vector<Embedding> expected = one.encode(items);
  const std::vector<Embedding> got = two.encode(items);
  for (std::size_t i = 0; i < items.size(); ++i) expect_same(got[i], expected[i]);
  EXPECT_EQ(computed_together(two), 1) << "four images are two for each replica";
}

TEST(Team, SmallImagesAndVideosStayWhole) {
  Engine one = load("qwen3_vl", 1);
  Engine two = load("qwen3_vl", 2, 1000);
  const MediaItem small = noise(160, 160, 1);
  expect_same(two.encode({&small, 1})[0], one.encode({&small, 1})[0]);
  const MediaItem video =
      video_rgb(std::vector<std::uint8_t>(6 * 512 * 512 * 3, 9), 6, 512, 512, 2.0, "clip");
  expect_same(two.encode({&video, 1})[0], one.encode({&video, 1})[0]);
  EXPECT_EQ(computed_together(two), 0);
  const MediaItem large = noise(512, 512, 1);
  expect_same(two.encode({&large, 1})[0], one.encode({&large, 1})[0]);
  EXPECT_EQ(computed_together(two), 1);
}

TEST(Team, ReplicasThatDoNotDivideTheHeadsTakeWholeImages) {
  Engine one = load("qwen3_vl", 1);
  Engine three = load("qwen3_vl", 3);
  const MediaItem image = noise(512, 512, 1);
  expect_same(three.encode({&image, 1})[0], one.encode({&image, 1})[0]);
  EXPECT_EQ(computed_together(three), 0);
}

TEST(Team, TowersWhoseRowsMeetElsewhereTakeWholeImages) {
  for (const char* family : {"qwen2_5_vl", "internvl", "deepseek_ocr"}) {
    Engine one = load(family, 1);
    Engine two = load(family, 2);
    const MediaItem image = noise(448, 448, 1);
    expect_same(two.encode({&image, 1})[0], one.encode({&image, 1})[0]);
    EXPECT_EQ(computed_together(two), 0) << family;
  }
}

TEST(Team, ACacheKeepsWhatATeamComputes) {
  EngineOptions options = options_of(2, 1);
  options.encoder_cache_bytes = 1 << 24;
  Engine two = Engine::load(test::golden_folder("qwen3_vl", "golden.safetensors"), options);
  Engine one = load("qwen3_vl", 1);
  const MediaItem image = noise(320, 240, 1);
  for (const CacheUse use : {CacheUse::kMiss, CacheUse::kHit}) {
    const Embedding got = two.encode({&image, 1})[0];
    expect_same(got, one.encode({&image, 1})[0]);
    EXPECT_EQ(got.cache, use);
  }
  EXPECT_EQ(computed_together(two), 1);
}

TEST(Team, CallsOfSeveralThreadsTakeTurns) {
  Engine one = load("qwen3_vl", 1);
  Engine two = load("qwen3_vl", 2);
  const std::vector<MediaItem> items = images();
  const std::vector<Embedding> expected = one.encode(items);
  std::vector<std::thread> callers;
  for (std::size_t caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (std::size_t i = 0; i < 8; ++i) {
        const std::size_t item = (caller + i) % items.size();
        expect_same(two.encode({&items[item], 1})[0], expected[item]);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(Team, AMemberThatCannotGoOnEndsTheCallOfAll) {
  Engine two = load("qwen3_vl", 2);
  const MediaItem image = noise(512, 512, 1);
  const Embedding before = two.encode({&image, 1})[0];
  // The deadline passes in one of the members, or in both, at any point.
  for (const int microseconds : {0, 50, 200, 500, 1000, 2000, 4000}) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
    try {
      (void)two.encode({&image, 1}, {.bounds = {.deadline = deadline}});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDeadline) << error.what();
    }
    expect_same(two.encode({&image, 1})[0], before);
  }
}

/// Two replicas of the tiny Qwen3-VL as an engine has them, with the table where they meet at hand.
class TwoReplicas {
 public:
  TwoReplicas() {
    const std::string folder = test::golden_folder("qwen3_vl", "golden.safetensors");
    const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
    std::vector<std::unique_ptr<Replica>> replicas;
    for (Backend& backend : backends_) {
      const auto stream = backend.device->create_copy_stream();
      models_.push_back(
          load_model(files, {}, checkpoint::WeightSource::open(folder), *backend.device, *stream));
      replicas.push_back(
          std::make_unique<Replica>(*models_.back(), *backend.device, GraphManagerOptions{}));
    }
    group_ = std::make_unique<ReplicaGroup>(std::move(replicas), 1);
    group_->for_each([](Replica& replica) { replica.graphs().capture(); });
    session_ = std::make_unique<GroupSession>(*group_);
  }

  [[nodiscard]] PreparedItem random_image() const {
    PreparedItem item{.plan = models_.front()->processor().plan_image(512, 384)};
    std::mt19937 random(1);
    item.pixels = test::random_bytes(item.plan.pixel_bytes, random);
    return item;
  }
  [[nodiscard]] TeamTable& table() { return *group_->take_team().get(); }
  Embedding encode(const PreparedItem& item) {
    Embedding rows;
    const TowerItem all{&item, {&rows}};
    session_->begin({&all, 1}, {});
    session_->finish();
    return rows;
  }
  [[nodiscard]] std::vector<ReplicaStats> stats() const { return group_->stats(); }

 private:
  std::array<Backend, 2> backends_{make_backend("cpu"), make_backend("cpu")};
  std::vector<std::unique_ptr<EncoderGraphModel>> models_;
  std::unique_ptr<ReplicaGroup> group_;
  std::unique_ptr<GroupSession> session_;
};

TEST(Team, AnImageThatMembersWaitForInVainIsComputedByOne) {
  TwoReplicas two;
  const PreparedItem image = two.random_image();
  const Embedding expected = two.encode(image);
  EXPECT_EQ(expected.graph, GraphUse::kMiss);
  TeamTable& table = two.table();
  std::atomic<bool> has_ended = false;
  std::thread late([&] {
    while (!has_ended) table.leave();
  });
  const Embedding got = two.encode(image);
  has_ended = true;
  late.join();
  EXPECT_EQ(got.graph, GraphUse::kHit) << "a graph has a whole image";
  EXPECT_EQ(got.rows, expected.rows);
  EXPECT_EQ(got.data, expected.data);
  const auto alone_and_together = [&] {
    const Stats first = two.stats()[0].stats;
    return std::pair(first.graph_hits, first.miss_reasons.at("team"));
  };
  EXPECT_EQ(alone_and_together(), std::pair(std::int64_t{1}, std::int64_t{1}));
  EXPECT_EQ(two.encode(image).data, expected.data);
  EXPECT_EQ(alone_and_together(), std::pair(std::int64_t{1}, std::int64_t{2})) << "a new team";
}

}  // namespace
}  // namespace fovea
