#include "graph/mock_parts.h"

#include <random>

#include "device/cpu/cpu_device.h"
#include "graph/deferred_device.h"

namespace fovea::test {

std::vector<float> random_floats(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> unit(-1.0f, 1.0f);
  std::vector<float> values(count);
  for (float& value : values) value = unit(random);
  return values;
}

std::vector<std::uint8_t> random_pixels(std::size_t elements, bool bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  if (bytes) {
    std::vector<std::uint8_t> pixels(elements);
    for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(random() % 256);
    return pixels;
  }
  const std::vector<float> floats = random_floats(elements, seed);
  const auto* const raw = reinterpret_cast<const std::uint8_t*>(floats.data());
  return {raw, raw + elements * sizeof(float)};
}

void submit_closure(Stream& stream, std::function<void()> work) {
  if (auto* const cpu = dynamic_cast<CpuStream*>(&stream)) {
    cpu->submit([work = std::move(work)](ThreadPool&) { work(); });
  } else if (auto* const deferred = dynamic_cast<DeferredStream*>(&stream)) {
    deferred->submit(std::move(work));
  }
}

}  // namespace fovea::test
