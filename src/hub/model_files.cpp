// Which files of a repository an engine needs.
#include "hub/model_files.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <span>
#include <string_view>

#include "checkpoint/hf_config.h"
#include "core/check.h"
#include "fovea/options.h"
#include "fovea/tower/checkpoint/weight_source.h"
#include "models/load_model.h"
#include "models/registry.h"

namespace fovea::hub {
namespace {

constexpr std::string_view kSingleFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";
constexpr std::string_view kExtension = ".safetensors";
/// modules.json marks embedding models, adapter_config.json adapters, which are refused by name.
constexpr std::array<std::string_view, 6> kDescription{"config.json",
                                                       "preprocessor_config.json",
                                                       "video_preprocessor_config.json",
                                                       "processor_config.json",
                                                       "modules.json",
                                                       "adapter_config.json"};

bool contains(const std::vector<std::string>& listed, std::string_view name) {
  return std::ranges::find(listed, name) != listed.end();
}

/// Names of tensors without their shapes, which no index has. Nobody reads them: they are looked
/// up.
WeightTensors names_of(const checkpoint::WeightSource& index) {
  WeightTensors tensors;
  tensors.read = [](std::size_t /*index*/, std::span<std::byte> /*out*/) {};
  for (const std::string& name : index.names()) {
    tensors.listings.push_back({.name = name, .dtype = "BF16", .shape = {}});
  }
  return tensors;
}

/// Adds the files of the tensors that the tower reads for one kind of output.
void add_shards(const checkpoint::HfConfig& files, const checkpoint::WeightSource& index,
                TowerOutput output, std::set<std::string>& shards) {
  const WeightTensors names = names_of(index);
  const auto listed = checkpoint::WeightSource::handed_over(files.directory, names);
  ModelReport report = check_model(files, MediaOptions{}, listed, output).report;
  for (TensorReport& tensor : report.tensors) {
    if (tensor.dtype.empty()) continue;  // missing
    tensor.problem.clear();              // of its shape
    shards.insert(index.file_of(tensor.name));
  }
  throw_if_incomplete(report, files, listed);
}

std::vector<std::string> indexed_files(const std::string& directory) {
  const checkpoint::HfConfig files = checkpoint::read_hf_config(directory);
  const auto index = checkpoint::WeightSource::open(directory);
  std::set<std::string> shards;
  add_shards(files, index, TowerOutput::kRows, shards);
  if (family_of(files).make_vectors != nullptr) {
    add_shards(files, index, TowerOutput::kVectors, shards);
  }
  return {shards.begin(), shards.end()};
}

}  // namespace

std::vector<std::string> description_files(const std::vector<std::string>& listed) {
  std::vector<std::string> wanted;
  for (const std::string_view name : kDescription) {
    if (contains(listed, name)) wanted.emplace_back(name);
  }
  if (!contains(listed, kSingleFile) && contains(listed, kIndexFile)) {
    wanted.emplace_back(kIndexFile);
  }
  return wanted;
}

bool is_foreign(const std::vector<std::string>& listed, std::string_view file) {
  if (contains(listed, file)) return false;
  if (std::ranges::find(kDescription, file) != kDescription.end() || file == kSingleFile) {
    return true;
  }
  const bool names_its_weights = contains(listed, kSingleFile) || contains(listed, kIndexFile);
  return !names_its_weights && (file == kIndexFile || file.ends_with(kExtension));
}

std::vector<std::string> weight_files(const std::vector<std::string>& listed,
                                      const std::string& directory, const std::string& name) {
  (void)family_of(checkpoint::read_hf_config(directory));  // an unknown one needs no weights
  if (contains(listed, kSingleFile)) return {std::string(kSingleFile)};
  if (contains(listed, kIndexFile)) return indexed_files(directory);
  std::vector<std::string> found;
  for (const std::string& file : listed) {
    if (file.ends_with(kExtension) && file.find('/') == file.npos) found.push_back(file);
  }
  FOVEA_CHECK(!found.empty(), kNotFound, name, ": expected weights as ", kSingleFile, ", ",
              kIndexFile, " or another *", kExtension, " file, found none of ", listed.size(),
              " files");
  std::ranges::sort(found);
  return found;
}

}  // namespace fovea::hub
