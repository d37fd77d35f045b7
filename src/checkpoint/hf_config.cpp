// The JSON files beside the weights. What their fields mean is the business of the model families.
#include "checkpoint/hf_config.h"

#include <vector>

#include "core/check.h"
#include "core/file.h"

namespace fovea::checkpoint {

namespace {

JsonDocument read_object(const std::string& path) {
  JsonDocument document = JsonDocument::read(path);
  FOVEA_CHECK(document.root().is_object(), kCorruptData, path, ": expected an object at top level");
  return document;
}

std::optional<JsonDocument> read_if_present(const std::string& path) {
  if (!path_exists(path)) return std::nullopt;
  return read_object(path);
}

}  // namespace

std::string HfConfig::architecture() const {
  const JsonView list = config.root().at("architectures");
  const std::vector<JsonView> names = list.elements();
  FOVEA_CHECK(!names.empty(), kCorruptData, list.path(), ": expected a name, got an empty array");
  return names.front().as_string();
}

std::optional<JsonView> HfConfig::image_processor() const {
  if (preprocessor) return preprocessor->root();
  if (processor) return processor->root().find("image_processor");
  return std::nullopt;
}

std::optional<JsonView> HfConfig::video_processor() const {
  if (video_preprocessor) return video_preprocessor->root();
  if (processor) {
    if (auto inner = processor->root().find("video_processor")) return inner;
  }
  if (preprocessor) return preprocessor->root();
  return std::nullopt;
}

HfConfig read_hf_config(const std::string& directory) {
  FOVEA_CHECK(directory_exists(directory), kNotFound, directory,
              ": expected the directory of a model");
  return {.directory = directory,
          .config = read_object(directory + "/config.json"),
          .preprocessor = read_if_present(directory + "/preprocessor_config.json"),
          .video_preprocessor = read_if_present(directory + "/video_preprocessor_config.json"),
          .processor = read_if_present(directory + "/processor_config.json")};
}

}  // namespace fovea::checkpoint
