// A scheduler of chance: requests that share items arrive, run window by window, are preempted and
// leave. What must hold after every step is checked against a model of the cache as simple as can
// be.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "cache/requests.h"
#include "fovea/cached_rows.h"
#include "fovea/encoder_cache.h"

namespace fovea {
namespace {

constexpr int kSteps = 20'000;
constexpr std::int64_t kCapacity = 60;
constexpr std::int64_t kStepTokens = 40;
constexpr int kKeys = 25;

class RandomScheduler {
 public:
  explicit RandomScheduler(unsigned seed) : random_(seed) {}

  void step() {
    if (running_.size() < 4) running_.push_back(arrive());
    std::vector<WindowPlan> plans;
    std::int64_t budget = kCapacity;
    for (Running& running : running_) plans.push_back(advance(running, budget));
    for (const std::string& key : cache_.drain_evicted()) {
      if (!is_resident(key)) rows_.erase(key);
    }
    if (find_deadlock(cache_, plans)) preempt(running_.back());
    if (chance(10)) preempt(running_[draw(0, std::ssize(running_) - 1)]);
    leave();
    check();
  }

 private:
  struct Running {
    CacheRequest request;
    std::int64_t length;
    std::int64_t computed = 0;
  };

  std::size_t draw(std::int64_t low, std::int64_t high) {
    return static_cast<std::size_t>(std::uniform_int_distribution(low, high)(random_));
  }
  bool chance(std::int64_t one_in) { return draw(1, one_in) == 1; }

  /// The mask of a key is the same in every request, as the same image has the same rows.
  static const std::string& mask_of_key(std::size_t key) {
    static const std::vector<std::string> masks = [] {
      std::vector<std::string> all;
      std::mt19937 random(1);
      for (int i = 0; i < kKeys; ++i) {
        all.emplace_back(1 + random() % 15, '1');
        for (char& c : all.back()) c = random() % 4 == 0 ? '0' : '1';
      }
      return all;
    }();
    return masks[key];
  }

  Running arrive() {
    Running running{.request = {.id = "r" + std::to_string(next_id_++)}};
    auto position = static_cast<std::int64_t>(draw(0, 9));
    for (std::size_t items = draw(0, 4); items > 0; --items) {
      const std::size_t key = draw(0, kKeys - 1);
      running.request.items.push_back(
          test::masked_item("k" + std::to_string(key), position, mask_of_key(key)));
      position =
          running.request.items.back().placeholder.end() + static_cast<std::int64_t>(draw(0, 9));
    }
    running.length = position + 1;
    return running;
  }

  WindowPlan advance(Running& running, std::int64_t& budget) {
    const std::int64_t wanted = std::min<std::int64_t>(
        static_cast<std::int64_t>(draw(1, kStepTokens)), running.length - running.computed);
    WindowPlan plan =
        plan_window(cache_, running.request, {running.computed, running.computed + wanted},
                    {.compute_budget = budget, .no_split = chance(3)});
    for (const std::size_t item : plan.local) {
      cache_.allocate(running.request, item);
      rows_[running.request.items[item].key] = std::vector<float>(
          static_cast<std::size_t>(running.request.items[item].placeholder.num_embeds()));
    }
    for (const std::size_t item : plan.duplicates) cache_.allocate(running.request, item);
    budget = plan.compute_budget;
    expect_rows_of_the_window(running, plan.length);
    running.computed += plan.length;
    release_consumed(cache_, running.request, running.computed);
    if (plan.length == 0) cache_.release_all(running.request);  // who waits holds nothing
    return plan;
  }

  void expect_rows_of_the_window(const Running& running, std::int64_t length) {
    const RequestWindow window{.request = &running.request,
                               .window = {running.computed, running.computed + length}};
    const auto source = [&](const std::string& key) -> std::optional<RowsView> {
      const auto found = rows_.find(key);
      if (!is_resident(key) || found == rows_.end()) return std::nullopt;
      return RowsView{reinterpret_cast<const std::byte*>(found->second.data()),
                      std::ssize(found->second), 1};
    };
    ASSERT_NO_THROW((void)gather_rows({&window, 1}, length, source));
  }

  void preempt(Running& running) {
    cache_.release_all(running.request);
    running.computed = 0;
  }

  void leave() {
    std::erase_if(running_, [&](const Running& running) {
      const bool is_done = running.computed == running.length || chance(50);
      if (is_done) cache_.release_all(running.request);
      return is_done;
    });
  }

  [[nodiscard]] bool is_resident(const std::string& key) const {
    const CacheRequest asks{"?", {{key, PlaceholderRange(0, 1)}}};
    return !cache_.cached_items(asks).empty();
  }

  void check() {
    std::int64_t resident = 0;
    for (int key = 0; key < kKeys; ++key) {
      if (!is_resident("k" + std::to_string(key))) continue;
      resident += std::ranges::count(mask_of_key(static_cast<std::size_t>(key)), '1');
    }
    ASSERT_LE(resident, kCapacity);
    ASSERT_EQ(cache_.num_free(), kCapacity - resident);
    std::int64_t free_of_holders = cache_.num_free();
    for (const std::string& key : cache_.freeable_keys()) {
      free_of_holders += std::ranges::count(mask_of_key(std::stoul(key.substr(1))), '1');
    }
    ASSERT_EQ(cache_.num_freeable(), free_of_holders);
  }

  std::mt19937 random_;
  EncoderCache cache_{kCapacity};
  std::vector<Running> running_;
  std::map<std::string, std::vector<float>> rows_;  // of the worker
  int next_id_ = 0;
};

TEST(RandomScheduler, FindsTheRowsOfEveryWindowItRuns) {
  RandomScheduler scheduler(1);
  for (int step = 0; step < kSteps; ++step) {
    scheduler.step();
    ASSERT_FALSE(HasFatalFailure()) << "step " << step;
  }
}

}  // namespace
}  // namespace fovea
