// Hosts give their threads small stacks.
#include <gtest/gtest.h>
#include <pthread.h>

#include <string>
#include <thread>
#include <vector>

#include "fovea/fovea.h"
#include "support/golden.h"

namespace fovea {
namespace {

/// The size of stacks of threads that start while it lives.
class DefaultStack {
 public:
  explicit DefaultStack(std::size_t bytes) {
    pthread_getattr_default_np(&before_);
    pthread_attr_t small;
    pthread_getattr_default_np(&small);
    pthread_attr_setstacksize(&small, bytes);
    pthread_setattr_default_np(&small);
    pthread_attr_destroy(&small);
  }
  ~DefaultStack() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  DefaultStack(const DefaultStack&) = delete;
  DefaultStack& operator=(const DefaultStack&) = delete;

 private:
  pthread_attr_t before_;
};

TEST(SmallStack, IsEnoughForTheCallerAndForThreadsOfTheEngine) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers make frames larger";
#endif
  constexpr std::size_t kStackBytes = std::size_t{128} << 10;  // as engine.h says
  for (const std::string& model : test::golden_models()) {
    std::vector<MediaItem> media;
    for (const std::string& path : images_in(model + "/images")) media.push_back(image_file(path));
    const EngineOptions options{.device = "cpu", .num_threads = 2};
    const std::vector<Embedding> expected = Engine::load(model, options).encode(media);
    const DefaultStack stack(kStackBytes);
    std::vector<Embedding> rows;
    std::thread([&] { rows = Engine::load(model, options).encode(media); }).join();
    ASSERT_EQ(rows.size(), expected.size()) << model;
    for (std::size_t i = 0; i < rows.size(); ++i)
      EXPECT_EQ(rows[i].data, expected[i].data) << model;
  }
}

}  // namespace
}  // namespace fovea
