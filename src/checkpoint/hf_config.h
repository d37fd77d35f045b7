#pragma once

#include <optional>
#include <string>

#include "core/json.h"

namespace fovea::checkpoint {

/// The JSON files of a Hugging Face model directory. Spellings of transformers 4 and 5 are both
/// accepted where a reader asks for them through the helpers below.
struct HfConfig {
  std::string directory;
  JsonDocument config;                             ///< config.json
  std::optional<JsonDocument> preprocessor;        ///< preprocessor_config.json
  std::optional<JsonDocument> video_preprocessor;  ///< video_preprocessor_config.json
  std::optional<JsonDocument> processor;           ///< processor_config.json

  /// architectures[0] of config.json.
  /// @throws Error(kCorruptData) if there is none.
  [[nodiscard]] std::string architecture() const;
  /// Where image preprocessing parameters are: preprocessor_config.json, else
  /// processor_config.json.image_processor, else absent.
  [[nodiscard]] std::optional<JsonView> image_processor() const;
  /// video_preprocessor_config.json, else processor_config.json.video_processor, else
  /// preprocessor_config.json, else absent.
  [[nodiscard]] std::optional<JsonView> video_processor() const;
};

/// Reads the files of a directory.
/// @throws Error(kNotFound) if the directory or its config.json is absent, Error(kCorruptData) if a
/// file is not valid JSON (with file, line and column) or not an object, Error(kIo).
[[nodiscard]] HfConfig read_hf_config(const std::string& directory);

}  // namespace fovea::checkpoint
