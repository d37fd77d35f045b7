#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/mm_processor/sampling.h"
#include "fovea/engine.h"
#include "fovea/media.h"

namespace fovea::cli {

/// An image (one frame) or video of independent, uniform random bytes.
struct RandomItem {
  ItemSize size;
  std::uint64_t seed = 0;
};

/// The items that one request of a benchmark asks to encode. Random items are made when they are
/// sent, so that a large workload does not fill the memory.
struct MmRequest {
  std::vector<RandomItem> random;
  std::vector<MediaItem> files;
};

/// How random images are handed to the engine; random videos are always decoded frames.
enum class ImageEncoding : std::uint8_t {
  kPng,  ///< as an uncompressed PNG file in memory, so that there is a decoding stage
  kRaw,  ///< as decoded pixels
};

/// Random requests; the same for the same seed on every machine.
[[nodiscard]] std::vector<MmRequest> random_requests(const ItemSampler& sampler, std::int64_t count,
                                                     std::uint64_t seed);

/// One request per image that `path` names: a directory, or anything else that INPUT of
/// `fovea encode` may be.
/// @throws Error(kNotFound) if there are none.
[[nodiscard]] std::vector<MmRequest> directory_requests(const std::string& path);

/// One request per line of a file of JSON objects with "image" (a path), "images" (a list of paths)
/// or "video" (a path: a video file or a directory of frames), or several of them; other keys do
/// not matter. Relative paths start at the directory of the file; empty lines do not count.
/// @throws Error(kNotFound), Error(kCorruptData) naming file and line.
[[nodiscard]] std::vector<MmRequest> jsonl_requests(const std::string& path);

/// Draws `count` requests in random order, each of `pool` once before any comes again.
/// @param pool not empty.
[[nodiscard]] std::vector<MmRequest> draw_requests(const std::vector<MmRequest>& pool,
                                                   std::int64_t count, std::uint64_t seed);

/// The request with the most random pixels or, of requests with files, the most bytes on disk.
/// @param requests not empty, all of one data set.
[[nodiscard]] const MmRequest& largest_request(std::span<const MmRequest> requests);

/// The items of a request, random pixels included.
[[nodiscard]] std::vector<MediaItem> make_items(const MmRequest& request, ImageEncoding encoding);
/// Makes the items of every request, on all processors.
[[nodiscard]] std::vector<std::vector<MediaItem>> make_all_items(
    std::span<const MmRequest> requests, ImageEncoding encoding);

}  // namespace fovea::cli
