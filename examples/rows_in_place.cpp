// Rows written where they are needed: into one matrix of the caller, on the host or on a GPU.
//
//   rows_in_place MODEL
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <numeric>
#include <span>
#include <vector>

#include "fovea/fovea.h"

namespace {

constexpr std::int64_t kSidePx = 128;

fovea::MediaItem make_image(int seed) {
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(kSidePx * kSidePx * 3));
  std::iota(rgb.begin(), rgb.end(), static_cast<std::uint8_t>(seed));
  return fovea::image_rgb(std::move(rgb), kSidePx, kSidePx, "image in memory");
}

/// The rows of all items one after the other in `memory`, as wide as those of the engine.
std::vector<fovea::RowBlock> rows_of(const fovea::Engine& engine,
                                     std::span<const fovea::ItemSize> sizes, float* memory,
                                     int device) {
  std::vector<fovea::RowBlock> blocks;
  for (const fovea::ItemInfo& item : engine.plan(sizes).items) {
    blocks.push_back({.data = memory, .device = device, .rows = item.rows});
    memory += item.rows * engine.report().width;
  }
  return blocks;
}

/// `memory` is of cudaMalloc on GPU `gpu`, `stream` a cudaStream_t of it. Returns when the work is
/// submitted: kernels that are put on the stream now find the rows.
void encode_on_gpu(fovea::Engine& engine, std::span<const fovea::MediaItem> items,
                   std::span<const fovea::ItemSize> sizes, float* memory, int gpu, void* stream) {
  const std::vector<fovea::RowBlock> blocks = rows_of(engine, sizes, memory, gpu);
  (void)engine.encode(items, blocks, {.device = gpu, .handle = stream});
}

/// An engine with replicas on two GPUs writes all rows to both of them.
void encode_on_two_gpus(fovea::Engine& engine, std::span<const fovea::MediaItem> items,
                        const fovea::Destinations& first, const fovea::Destinations& second) {
  (void)engine.encode(items, first.blocks, first.stream, {.copies = {&second, 1}});
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: rows_in_place MODEL\n";
    return 2;
  }
  (void)&encode_on_two_gpus;
  (void)&encode_on_gpu;  // for whoever has CUDA's headers
  fovea::Engine engine = fovea::Engine::load(argv[1]);
  const std::vector<fovea::MediaItem> items{make_image(0), make_image(1)};
  const std::vector<fovea::ItemSize> sizes(
      2, fovea::ItemSize{.width_px = kSidePx, .height_px = kSidePx});

  std::int64_t rows = 0;
  for (const fovea::ItemInfo& item : engine.plan(sizes).items) rows += item.rows;
  std::vector<float> matrix(static_cast<std::size_t>(rows * engine.report().width));
  const std::vector<fovea::RowBlock> blocks =
      rows_of(engine, sizes, matrix.data(), fovea::RowBlock::kHost);
  for (const fovea::Embedding& item : engine.encode(items, blocks, {})) {
    std::cout << item.name << ": " << item.rows << " rows in place\n";
  }
  std::cout << "first element of each: " << matrix.front() << ", "
            << *static_cast<const float*>(blocks[1].data) << '\n';
  return 0;
} catch (const fovea::Error& error) {
  std::cerr << "rows_in_place: " << error.what() << '\n';
  return 1;
}
