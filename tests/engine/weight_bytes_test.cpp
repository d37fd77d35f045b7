// What a report says about the memory of weights, on every kind of device of this machine.
#include <gtest/gtest.h>

#include "engine/backend.h"
#include "fovea/engine.h"
#include "models/load_model.h"
#include "support/golden.h"

namespace fovea {
namespace {

class WeightBytes : public ::testing::TestWithParam<std::string> {};

TEST_P(WeightBytes, AreThoseOfTheWeightsAlone) {
  if (GetParam() == "cuda" && cuda_status().starts_with("not used")) GTEST_SKIP() << cuda_status();
  const std::string folder = test::golden_folder("qwen3_vl", "model.safetensors");
  const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
  const Backend backend = make_backend(GetParam(), {.num_threads = 1});
  const std::unique_ptr<Stream> stream = backend.device->create_copy_stream();
  const std::size_t before = backend.device->allocated_bytes();
  const auto model =
      load_model(files, {}, checkpoint::WeightSource::open(folder), *backend.device, *stream);
  stream->synchronize();
  // Streams for ops take scratch memory, which does not count.
  const Engine engine = Engine::load(folder, {.device = GetParam(), .num_threads = 1});
  EXPECT_EQ(engine.report().weight_bytes, backend.device->allocated_bytes() - before);
}

INSTANTIATE_TEST_SUITE_P(Devices, WeightBytes, ::testing::Values("cpu", "cuda"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace fovea
