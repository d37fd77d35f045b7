#pragma once

#include <optional>
#include <string>

#include "checkpoint/hf_config.h"

namespace fovea::test {

/// Texts of the files of a model directory; an empty text stands for no file.
struct ConfigTexts {
  std::string config = "{}";
  std::string preprocessor = {};
  std::string video_preprocessor = {};
  std::string processor = {};
};

/// The files of a directory "model" with these texts.
[[nodiscard]] inline checkpoint::HfConfig config_files(const ConfigTexts& texts) {
  const auto optional_file = [](const std::string& text, const char* name) {
    return text.empty() ? std::nullopt : std::optional(JsonDocument::parse(text, name));
  };
  return {.directory = "model",
          .config = JsonDocument::parse(texts.config, "config.json"),
          .preprocessor = optional_file(texts.preprocessor, "preprocessor_config.json"),
          .video_preprocessor =
              optional_file(texts.video_preprocessor, "video_preprocessor_config.json"),
          .processor = optional_file(texts.processor, "processor_config.json")};
}

}  // namespace fovea::test
