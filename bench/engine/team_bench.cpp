// What an image takes that several GPUs compute together.
//
//   fovea_bench_team [MODEL [PATCHES [RUNS [MEMBERS [fp8]]]]]
//
// MODEL (bench/configs/qwen3_vl_30b_a3b) is loaded with random weights. RUNS (30) forwards of an
// image of PATCHES (16384), prepared on the host, by a team of up to MEMBERS (8) GPUs, rows left
// where they are: at most 30 by one, then RUNS by each power of two up to MEMBERS. Where there are
// fewer GPUs up to four members share one: the time of a team is then the work of all members, and
// says what sharing adds to it. (The streams of more have no queues of their own, and wait for each
// other.) The last column compares rows with those of one GPU. Says so and ends where there is no
// GPU.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/hf_config.h"
#include "core/check.h"
#include "device/cuda_plugin.h"
#include "engine/backend.h"
#include "engine/diagnostics/compare.h"
#include "engine/replicas/group_session.h"
#include "fovea/tower/checkpoint/weight_source.h"
#include "graph/capture/image_search.h"
#include "models/load_model.h"

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;

/// Replicas of a model as a team of their own.
class TeamOfGpus {
 public:
  TeamOfGpus(const std::string& model, std::span<const int> gpus, Quantization quantization) {
    const checkpoint::HfConfig files = checkpoint::read_hf_config(model);
    std::vector<std::unique_ptr<Replica>> replicas;
    for (const int gpu : gpus) {
      const Backend& backend = backends_.emplace_back(make_backend(cat("cuda:", gpu)));
      const auto stream = backend.device->create_copy_stream();
      models_.push_back(load_model(files, {}, checkpoint::WeightSource::dummy(0), *backend.device,
                                   *stream, quantization_plan(quantization)));
      stream->synchronize();
      GraphManagerOptions options;
      options.user.encoder_cudagraph_token_budgets = {1024};  // GEMMs are measured at its sizes
      replicas.push_back(std::make_unique<Replica>(*models_.back(), *backend.device, options));
    }
    group_ = std::make_unique<ReplicaGroup>(std::move(replicas), 1);
    group_->for_each([](Replica& replica) { replica.graphs().capture(); });
    session_ = std::make_unique<GroupSession>(*group_);
  }

  [[nodiscard]] const EncoderGraphModel& model() const { return *models_.front(); }
  /// The rows of an image, on the host.
  [[nodiscard]] Embedding rows(const PreparedItem& item) {
    Embedding rows;
    const TowerItem all{&item, {&rows}};
    session_->begin({&all, 1}, {.enforce_eager = true});
    session_->finish();
    return rows;
  }
  /// Milliseconds of a run whose rows stay where they are.
  [[nodiscard]] double run_ms(const PreparedItem& item) {
    const TowerItem all{&item};
    const Clock::time_point begin = Clock::now();
    session_->begin({&all, 1}, {.enforce_eager = true});
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  }

 private:
  std::vector<Backend> backends_;
  std::vector<std::unique_ptr<EncoderGraphModel>> models_;
  std::unique_ptr<ReplicaGroup> group_;
  std::unique_ptr<GroupSession> session_;
};

PreparedItem random_image(const EncoderGraphModel& model, std::int64_t patches) {
  const auto count = [](const ItemPlan& plan) { return plan.spec.input_rows; };
  const NearestImages found = find_images(model, patches, count);
  PreparedItem item{.plan = found.up_to ? *found.up_to : found.above.value()};
  item.pixels.resize(item.plan.pixel_bytes);
  std::mt19937 random(7);
  for (std::uint8_t& value : item.pixels) value = static_cast<std::uint8_t>(random());
  return item;
}

void run(const std::string& model, std::int64_t patches, int runs, std::size_t members,
         Quantization quantization) {
  const std::vector<int> usable = usable_gpus(find_cuda());
  std::printf("| members | GPUs | patches | median, ms | p99 | longest | relative L2 |\n");
  std::printf("|---|---|---|---|---|---|---|\n");
  Embedding alone;
  for (std::size_t size = 1; size <= std::min(members, 4 * usable.size()); size *= 2) {
    std::vector<int> gpus;
    for (std::size_t i = 0; i < size; ++i) gpus.push_back(usable[i % usable.size()]);
    TeamOfGpus team(model, gpus, quantization);
    const PreparedItem item = random_image(team.model(), patches);
    const Embedding rows = team.rows(item);
    if (size == 1) alone = rows;
    std::vector<double> times;
    for (int i = -3; i < (size == 1 ? std::min(runs, 30) : runs); ++i) {
      const double ms = team.run_ms(item);
      if (i >= 0) times.push_back(ms);
    }
    std::ranges::sort(times);
    std::printf("| %zu | %zu | %lld | %.2f | %.2f | %.2f | %.2g |\n", size,
                std::set<int>(gpus.begin(), gpus.end()).size(),
                static_cast<long long>(item.plan.spec.input_rows), times[times.size() / 2],
                times[times.size() * 99 / 100], times.back(),
                compare({&rows, 1}, {&alone, 1}).relative);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace fovea

int main(int argc, char** argv) {
  if (fovea::usable_gpus(fovea::find_cuda()).empty()) {
    std::printf("%s\n", fovea::cuda_status().c_str());
    return 0;
  }
  const auto number = [&](int i, int otherwise) {
    return argc > i ? std::max(1, std::atoi(argv[i])) : otherwise;
  };
  const bool is_fp8 = argc > 5 && std::strcmp(argv[5], "fp8") == 0;
  fovea::run(argc > 1 ? argv[1] : "bench/configs/qwen3_vl_30b_a3b", number(2, 16384), number(3, 30),
             static_cast<std::size_t>(number(4, 8)),
             is_fp8 ? fovea::Quantization::kFp8 : fovea::Quantization::kNone);
  return 0;
}
