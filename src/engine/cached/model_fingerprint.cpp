// Which weights rows come from.
#include "engine/cached/model_fingerprint.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/check.h"
#include "core/file.h"
#include "core/json.h"
#include "core/sha256.h"
#include "fovea/option_table.h"

namespace fovea {

namespace {

constexpr std::size_t kMaxLibraryBytes = std::size_t{1} << 30;

/// Adds a part by name and length, so that no other parts give the same bytes.
void add_part(Sha256& hash, const std::string& name, std::span<const std::byte> bytes) {
  hash.add(cat(name, " ", bytes.size(), "\n"));
  hash.add(bytes);
}

/// "name dtype 2x3 hash".
std::string line_of(const TensorReport& tensor, const checkpoint::WeightSource& weights) {
  const ConstTensorView view = weights.tensor(tensor.name, Shape(tensor.shape));
  Sha256 hash;
  hash.add(std::span(view.data, view.bytes()));
  return cat(tensor.name, " ", tensor.dtype, " ", view.shape, " ", hash.hex(), "\n");
}

}  // namespace

std::string model_fingerprint(const checkpoint::HfConfig& files,
                              const checkpoint::WeightSource& weights,
                              std::span<const TensorReport> tensors, DType compute,
                              const EngineOptions& options, ThreadPool& pool) {
  Sha256 hash;
  for (const char* name : {"config.json", "preprocessor_config.json",
                           "video_preprocessor_config.json", "processor_config.json"}) {
    const std::string path = (std::filesystem::path(files.directory) / name).string();
    if (!path_exists(path)) continue;
    const std::vector<std::uint8_t> bytes = read_file(path, kMaxJsonBytes);
    add_part(hash, name, std::as_bytes(std::span(bytes)));
  }
  if (!files.tower.empty()) {
    const std::vector<std::uint8_t> bytes = read_file(files.tower, kMaxLibraryBytes);
    add_part(hash, "tower", std::as_bytes(std::span(bytes)));
  }
  if (weights.is_dummy()) {
    hash.add(cat("dummy ", options.seed, "\n"));
  } else {
    std::vector<std::string> lines(tensors.size());
    pool.parallel_for(std::ssize(tensors), [&](std::int64_t i, int) {
      const auto index = static_cast<std::size_t>(i);
      lines[index] = line_of(tensors[index], weights);
    });
    std::ranges::sort(lines);
    for (const std::string& line : lines) hash.add(line);
  }
  return cat(hash.hex(), ";dtype=", to_string(compute), ";quant=", value_name(options.quantization),
             options.vectors ? ";vectors" : "", options.normalize_vectors ? ";unit" : "");
}

}  // namespace fovea
