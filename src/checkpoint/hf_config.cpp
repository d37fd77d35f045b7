// The JSON files beside the weights. What their fields mean is the business of the model families.
#include "checkpoint/hf_config.h"

#include <set>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/file.h"
#include "core/json_writer.h"

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

/// An adapter changes weights that are elsewhere, and nothing here applies it.
void check_adapter(const std::string& directory) {
  const std::string adapter = directory + "/adapter_config.json";
  if (!path_exists(adapter)) return;
  const bool alone = !path_exists(directory + "/config.json");
  FOVEA_CHECK(
      !alone, kNotFound, adapter,
      ": expected a whole model, got an adapter (LoRA) without config.json; merge it into its "
      "base model and name the directory of the result");
  FOVEA_CHECK(false, kUnsupported, adapter,
              ": adapters (LoRA) are not applied; merge it into the weights, or remove the file if "
              "that is done");
}

/// A member of processor_config.json.
std::optional<JsonView> nested(const std::optional<JsonDocument>& processor, const char* key) {
  return processor ? processor->root().find(key) : std::nullopt;
}

std::optional<JsonView> whole(const std::optional<JsonDocument>& file) {
  return file ? std::optional(file->root()) : std::nullopt;
}

/// Keys of either object that the other lacks or gives another value.
std::vector<std::string> differing_keys(const JsonView& a, const JsonView& b) {
  std::set<std::string> keys;
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    for (const std::string_view key : from.keys()) {
      const auto mine = from.find(key);
      const auto other = to.find(key);
      const bool same = mine && other ? mine->equals(*other) : !mine && !other;
      if (!same) keys.emplace(key);
    }
  }
  return {keys.begin(), keys.end()};
}

/// The parameters of an item, and those of `file` that it has not given. Without a file there is
/// nothing that they would be the rest of.
std::optional<JsonDocument> with_parameters(const std::optional<JsonView>& file,
                                            const JsonView& given) {
  if (!file) return std::nullopt;
  std::string text = "{";
  const auto append = [&](const JsonView& from, std::size_t i) {
    if (text.size() > 1) text += ',';
    append_json(text, from.key(i));
    text += ':';
    from.member(i).append_to(text);
  };
  const auto is_replaced = [&](std::string_view key) {
    const bool is_bound = key == "min_pixels" || key == "max_pixels";
    return given.find(key) || (is_bound && given.find("size"));
  };
  for (std::size_t i = 0; i < given.num_members(); ++i) append(given, i);
  for (std::size_t i = 0; i < file->num_members(); ++i) {
    if (!is_replaced(file->key(i))) append(*file, i);
  }
  return JsonDocument::parse(text + "}", given.path());
}

}  // namespace

std::vector<std::string> HfConfig::architectures() const {
  std::vector<std::string> names;
  if (const auto list = config.root().find("architectures")) {
    for (const JsonView& name : list->elements()) names.push_back(name.as_string());
  }
  return names;
}

std::optional<JsonView> HfConfig::image_processor() const {
  if (item && item->image_processor) return item->image_processor->root();
  if (auto inner = nested(processor, "image_processor")) return inner;
  return whole(preprocessor);
}

std::optional<JsonView> HfConfig::video_processor() const {
  if (item && item->video_processor) return item->video_processor->root();
  if (auto inner = nested(processor, "video_processor")) return inner;
  return whole(video_preprocessor ? video_preprocessor : preprocessor);
}

HfConfig HfConfig::with_item(const JsonDocument& given, Modality modality) const {
  HfConfig files = *this;
  ItemParameters own{.given = given, .image_processor = {}, .video_processor = {}};
  if (modality == Modality::kImage) {
    own.image_processor = with_parameters(image_processor(), given.root());
  } else {
    own.video_processor = with_parameters(video_processor(), given.root());
  }
  files.item = std::move(own);
  return files;
}

std::optional<std::string> HfConfig::quantization() const {
  const auto settings = config.root().find("quantization_config");
  if (!settings || !settings->is_object()) return std::nullopt;
  return settings->string_or("quant_method", "by an unnamed method");
}

std::optional<std::string> HfConfig::embedding_file() const {
  for (const char* name : {"modules.json", "1_Pooling"}) {
    if (path_exists(directory + "/" + name)) return name;
  }
  return std::nullopt;
}

std::vector<ShadowedFile> HfConfig::shadowed_files() const {
  std::vector<ShadowedFile> shadowed;
  const auto compare = [&](const std::optional<JsonView>& used,
                           const std::optional<JsonDocument>& file) {
    if (!used || !file) return;
    std::vector<std::string> keys = differing_keys(*used, file->root());
    if (keys.empty()) return;
    shadowed.push_back(
        {.path = file->root().path(), .used = used->path(), .keys = std::move(keys)});
  };
  compare(nested(processor, "image_processor"), preprocessor);
  compare(nested(processor, "video_processor"), video_preprocessor);
  return shadowed;
}

HfConfig read_hf_config(const std::string& directory) {
  FOVEA_CHECK(directory_exists(directory), kNotFound, directory,
              ": expected the directory of a model");
  check_adapter(directory);
  return {.directory = directory,
          .config = read_object(directory + "/config.json"),
          .preprocessor = read_if_present(directory + "/preprocessor_config.json"),
          .video_preprocessor = read_if_present(directory + "/video_preprocessor_config.json"),
          .processor = read_if_present(directory + "/processor_config.json")};
}

}  // namespace fovea::checkpoint
