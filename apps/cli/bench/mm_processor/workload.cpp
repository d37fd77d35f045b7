// The requests of a benchmark, from random numbers or from files.
#include "bench/mm_processor/workload.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <sstream>
#include <thread>
#include <utility>

#include "bench/synthetic.h"
#include "flags/json_text.h"
#include "flags/sizes.h"
#include "fovea/text.h"
#include "inputs.h"
#include "output_file.h"

namespace fovea::cli {
namespace {

/// The rate of random videos; the frames count as sampled already, so it changes nothing but
/// metadata.
constexpr double kFramesPerSecond = 2.0;

/// Reads one line of a JSONL file.
class RequestLine {
 public:
  /// @param text outlives this. @param place "file:line", for messages.
  RequestLine(const std::string& text, std::string place, std::filesystem::path folder)
      : line_(parse_json_object(text)), place_(std::move(place)), folder_(std::move(folder)) {
    if (!line_) fail("a JSON object", shown_json(text));
  }

  [[nodiscard]] MmRequest request() const {
    MmRequest request;
    if (const auto image = line_->root().find("image")) {
      request.files.push_back(image_file(path_of(*image, "\"image\": a path")));
    }
    if (const auto images = line_->root().find("images")) {
      constexpr const char* kExpected = "\"images\": a list of paths";
      if (!images->is_array()) fail(kExpected, shown(*images));
      for (const JsonView& image : images->elements()) {
        request.files.push_back(image_file(path_of(image, kExpected)));
      }
    }
    if (const auto video = line_->root().find("video")) {
      request.files.push_back(video_path(path_of(*video, "\"video\": a path")));
    }
    if (request.files.empty()) {
      fail("\"image\", \"images\" or \"video\"", shown(line_->root()));
    }
    return request;
  }

 private:
  [[nodiscard]] std::string path_of(const JsonView& value, const std::string& expected) const {
    if (!value.is_string()) fail(expected, shown(value));
    const std::string path = value.as_string();
    if (is_url(path)) fail(expected + ", URLs are not read", shown(path));
    return folder_ / path;
  }
  [[noreturn]] void fail(const std::string& expected, const std::string& got) const {
    throw Error(ErrorCode::kCorruptData, place_ + ": expected " + expected + ", got " + got);
  }

  std::optional<JsonDocument> line_;
  std::string place_;
  std::filesystem::path folder_;
};

MediaItem make_item(const RandomItem& random_item, ImageEncoding encoding, std::string name) {
  const ItemSize& size = random_item.size;
  std::vector<std::uint8_t> rgb(
      static_cast<std::size_t>(size.num_frames * size.height_px * size.width_px * 3));
  Random random(random_item.seed);
  random.fill(rgb);
  if (size.num_frames > 1) {
    return video_rgb(std::move(rgb), size.num_frames, size.width_px, size.height_px,
                     kFramesPerSecond, std::move(name));
  }
  if (encoding == ImageEncoding::kRaw) {
    return image_rgb(std::move(rgb), size.width_px, size.height_px, std::move(name));
  }
  return image_bytes(encode_png(rgb, size.width_px, size.height_px), std::move(name));
}

/// Returns the bytes of all files and random pixels; a file that is not there counts 0, and the
/// engine will say so.
std::uint64_t size_of(const MmRequest& request) {
  std::uint64_t size = 0;
  for (const RandomItem& item : request.random) {
    size +=
        static_cast<std::uint64_t>(item.size.num_frames * item.size.height_px * item.size.width_px);
  }
  for (const MediaItem& item : request.files) {
    for (const std::string& path : item.paths()) {
      std::error_code failure;
      const std::uintmax_t bytes = std::filesystem::file_size(path, failure);
      if (!failure) size += bytes;
    }
  }
  return size;
}

}  // namespace

std::vector<MmRequest> random_requests(const ItemSampler& sampler, std::int64_t count,
                                       std::uint64_t seed) {
  Random random(seed);
  std::vector<MmRequest> requests(static_cast<std::size_t>(count));
  for (MmRequest& request : requests) {
    for (const ItemSize& size : sampler.request(random)) {
      request.random.push_back({.size = size, .seed = random.next()});
    }
  }
  return requests;
}

std::vector<MmRequest> directory_requests(const std::string& path) {
  const InputArgument argument{.modality = Modality::kImage, .text = path};
  std::vector<MmRequest> requests;
  std::vector<Input> inputs = expand_inputs({&argument, 1}, {.fps = kFramesPerSecond});
  require_all(inputs);
  for (Input& input : inputs) {
    std::error_code ignored;
    for (const std::string& file : input.item.paths()) {
      if (std::filesystem::exists(file, ignored)) continue;
      throw Error(ErrorCode::kNotFound, file + ": no such file or directory");
    }
    MmRequest& request = requests.emplace_back();
    request.files.push_back(std::move(input.item));
  }
  return requests;
}

std::vector<MmRequest> jsonl_requests(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::istringstream stream(read_text_file(path, kMaxTextFileBytes));
  std::vector<MmRequest> requests;
  std::int64_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    requests.push_back(RequestLine(line, path + ":" + std::to_string(number), folder).request());
  }
  if (requests.empty()) throw Error(ErrorCode::kNotFound, path + ": the file holds no request");
  return requests;
}

std::vector<MmRequest> draw_requests(const std::vector<MmRequest>& pool, std::int64_t count,
                                     std::uint64_t seed) {
  Random random(seed);
  std::vector<std::size_t> order(pool.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<MmRequest> requests;
  while (true) {
    for (std::size_t i = order.size() - 1; i > 0; --i) {
      std::swap(order[i],
                order[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(i)))]);
    }
    for (const std::size_t index : order) {
      if (std::ssize(requests) == count) return requests;
      requests.push_back(pool[index]);
    }
  }
}

const MmRequest& largest_request(std::span<const MmRequest> requests) {
  return *std::ranges::max_element(requests, {}, &size_of);
}

std::vector<MediaItem> make_items(const MmRequest& request, ImageEncoding encoding) {
  std::vector<MediaItem> items = request.files;
  for (const RandomItem& random : request.random) {
    const std::string name =
        "random item " + std::to_string(items.size()) + " of " + to_text(random.size);
    items.push_back(make_item(random, encoding, name));
  }
  return items;
}

std::vector<std::vector<MediaItem>> make_all_items(std::span<const MmRequest> requests,
                                                   ImageEncoding encoding) {
  std::vector<std::vector<MediaItem>> all(requests.size());
  std::atomic<std::size_t> next{0};
  const auto make = [&] {
    for (std::size_t i = next++; i < all.size(); i = next++) {
      all[i] = make_items(requests[i], encoding);
    }
  };
  std::vector<std::future<void>> workers;
  const std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
  while (workers.size() < std::min(threads, all.size())) {
    workers.push_back(std::async(std::launch::async, make));
  }
  for (std::future<void>& worker : workers) worker.get();
  return all;
}

}  // namespace fovea::cli
