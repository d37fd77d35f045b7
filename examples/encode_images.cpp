// The library from the outside: plans sizes, encodes image files, an image already in memory and a
// short video in one call, reads single elements, and writes everything as safetensors.
//
// usage: encode_images MODEL OUTPUT.safetensors IMAGE...
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "fovea/fovea.h"

namespace {

constexpr std::int64_t kSide = 96;   // of the images made here, in pixels
constexpr std::int64_t kFrames = 4;  // of the video made here

/// Decoded pixels as an application might have them: a colour ramp, height x width x RGB. `phase`
/// shifts the ramp, so that the frames of a video differ.
std::vector<std::uint8_t> make_ramp(std::int64_t phase) {
  std::vector<std::uint8_t> rgb;
  rgb.reserve(static_cast<std::size_t>(kSide * kSide * 3));
  for (std::int64_t y = 0; y < kSide; ++y) {
    for (std::int64_t x = 0; x < kSide; ++x) {
      rgb.push_back(static_cast<std::uint8_t>(2 * x + phase));
      rgb.push_back(static_cast<std::uint8_t>(2 * y));
      rgb.push_back(static_cast<std::uint8_t>(x + y));
    }
  }
  return rgb;
}

std::vector<std::uint8_t> make_video() {
  std::vector<std::uint8_t> frames;
  for (std::int64_t frame = 0; frame < kFrames; ++frame) {
    const std::vector<std::uint8_t> rgb = make_ramp(8 * frame);
    frames.insert(frames.end(), rgb.begin(), rgb.end());
  }
  return frames;
}

void print_item(const fovea::Embedding& item) {
  if (item.error) {
    std::printf("%-28s %s\n", item.name.c_str(), item.error->what());
    return;
  }
  std::printf("%-28s %5lld rows of %lld, %.1f ms in the tower, first row:", item.name.c_str(),
              static_cast<long long>(item.rows), static_cast<long long>(item.width),
              item.times.encode_ms);
  for (std::int64_t column = 0; column < 4; ++column) std::printf(" %8.4f", item.at(0, column));
  std::printf("\n");
}

void run(const std::string& model, const std::string& output, std::span<char*> images) {
  // Sizes are integer arithmetic: rows are known before any weight is loaded.
  const std::vector<fovea::ItemSize> sizes{{.width_px = 1024, .height_px = 768, .num_frames = 1}};
  const fovea::PackingPlan plan = fovea::plan(model, sizes);
  std::printf("an image of 1024 x 768 becomes %lld rows\n",
              static_cast<long long>(plan.items[0].rows));

  fovea::EngineOptions options;
  options.device = "auto";  // a GPU when there is one, the CPU otherwise
  fovea::Engine engine = fovea::Engine::load(model, options);

  std::vector<fovea::MediaItem> items;
  for (const char* image : images) items.push_back(fovea::image_file(image));
  items.push_back(fovea::image_rgb(make_ramp(0), kSide, kSide, "image in memory"));
  items.push_back(
      fovea::video_rgb(make_video(), kFrames, kSide, kSide, /*fps=*/2.0, "video in memory"));

  // One call: the engine packs the items into sub-batches; results come in the order of `items`. An
  // item that fails carries its error and does not stop the others.
  const std::vector<fovea::Embedding> embeddings =
      engine.encode(items, {.dtype = fovea::RowDType::kFloat32, .on_error = fovea::OnError::kSkip});
  for (const fovea::Embedding& item : embeddings) print_item(item);

  // A call ends early if another thread wants it, or at a time.
  std::stop_source stop;  // request_stop() from any thread
  const fovea::CallBounds bounds{
      .stop = stop.get_token(),
      .deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5)};
  print_item(engine.encode({items.data(), 1}, {.bounds = bounds}).front());

  fovea::save_safetensors(output, embeddings, {{"example", "encode_images"}});
  const fovea::Stats stats = engine.stats();
  std::printf("wrote %s; %lld sub-batches, %.0f %% of the items by graph replay on %s\n",
              output.c_str(), static_cast<long long>(stats.sub_batches), 100 * stats.hit_rate(),
              engine.device().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: encode_images MODEL OUTPUT.safetensors IMAGE...\n");
    return 2;
  }
  try {
    run(argv[1], argv[2], std::span(argv, static_cast<std::size_t>(argc)).subspan(3));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
