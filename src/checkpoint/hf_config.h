#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "fovea/media.h"

namespace fovea::checkpoint {

/// A file of preprocessing parameters that is not looked at, since others are in its place.
struct ShadowedFile {
  std::string path;               ///< of the file
  std::string used;               ///< of the object that is read instead: "file: key"
  std::vector<std::string> keys;  ///< whose values differ between the two, ascending; never empty
};

/// Parameters of preprocessing that one item has, in the place of those of the files.
struct ItemParameters {
  JsonDocument given;  ///< by the item: an object
  std::optional<JsonDocument>
      image_processor;  ///< of an image: with those of the files for the rest
  std::optional<JsonDocument> video_processor;  ///< of a video: likewise
};

/// The JSON files of a Hugging Face model directory. Spellings of transformers 4 and 5 are both
/// accepted where a reader asks for them through the helpers below.
struct HfConfig {
  std::string directory;
  JsonDocument config;                             ///< config.json
  std::optional<JsonDocument> preprocessor;        ///< preprocessor_config.json
  std::optional<JsonDocument> video_preprocessor;  ///< video_preprocessor_config.json
  std::optional<JsonDocument> processor;           ///< processor_config.json
  std::string tower = {};  ///< library with the tower, where that is not one of Fovea's; else empty
  std::optional<ItemParameters> item = {};  ///< absent for all items without

  /// architectures of config.json, in its order; none where the key is absent or null.
  /// @throws Error(kCorruptData) for anything but a list of texts.
  [[nodiscard]] std::vector<std::string> architectures() const;
  /// Where image preprocessing parameters are: those of the item, else
  /// processor_config.json.image_processor, as
  /// transformers 5 writes it, else preprocessor_config.json, else absent. Parameters of one place
  /// never complete those of another. Source: transformers 5.24, image_processing_base.py.
  [[nodiscard]] std::optional<JsonView> image_processor() const;
  /// Those of the item, else processor_config.json.video_processor, else
  /// video_preprocessor_config.json, else preprocessor_config.json, else absent. Source:
  /// transformers 5.24, video_processing_utils.py.
  [[nodiscard]] std::optional<JsonView> video_processor() const;
  /// How config.json says that weights are quantised: its quantization_config.quant_method, "awq"
  /// or "fp8"; absent for a checkpoint that is not. Which layers stay as they were it does not say.
  [[nodiscard]] std::optional<std::string> quantization() const;
  /// The file that makes this checkpoint an embedding model, "modules.json" or "1_Pooling" of
  /// Sentence Transformers; absent for others. Its vectors are made of states of its language
  /// model.
  [[nodiscard]] std::optional<std::string> embedding_file() const;
  /// The same files for an item with parameters of its own. `size` takes the place of all bounds of
  /// pixels that the files have. What holds for items of the other modality stays: bounds of images
  /// may be none of videos.
  /// @param given an object with keys of processor files; its name begins the messages about them.
  [[nodiscard]] HfConfig with_item(const JsonDocument& given, Modality modality) const;
  /// Files that would say something else than what the two functions above return.
  [[nodiscard]] std::vector<ShadowedFile> shadowed_files() const;
};

/// Reads the files of a directory.
/// @throws Error(kNotFound) if the directory or its config.json is absent, Error(kCorruptData) if a
/// file is not valid JSON (with file, line and column) or not an object, Error(kIo);
/// Error(kNotFound) for an adapter alone, Error(kUnsupported) for one beside a model.
[[nodiscard]] HfConfig read_hf_config(const std::string& directory);

}  // namespace fovea::checkpoint
