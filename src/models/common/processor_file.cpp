// The common part of the processor files of all families.
#include "models/common/processor_file.h"

#include <cmath>
#include <vector>

#include "core/check.h"
#include "models/common/config_reader.h"

namespace fovea::common {

namespace {

/// Subnormal numbers do not count as positive: what is divided by them is infinite.
bool is_positive(double value) { return std::isnormal(static_cast<float>(value)) && value > 0; }

/// A side of `size`, a number or an object.
std::int64_t read_side(const JsonView& size, const char* key, std::int64_t fallback) {
  return size.is_object() ? read_size(size, key, fallback) : as_size(size);
}

}  // namespace

std::array<float, 3> read_channels(const JsonView& object, std::string_view key,
                                   const std::array<float, 3>& fallback) {
  const auto list = object.find(key);
  if (!list) return fallback;
  const std::vector<JsonView> values = elements_of(*list, 3);
  std::array<float, 3> result{};
  for (std::size_t c = 0; c < 3; ++c) {
    result[c] = static_cast<float>(values[c].as_number());
    FOVEA_CHECK(std::isfinite(result[c]), kCorruptData, values[c].path(),
                ": expected a number that f32 holds, got ", values[c].as_number());
  }
  return result;
}

std::array<float, 3> read_positive_channels(const JsonView& object, std::string_view key,
                                            const std::array<float, 3>& fallback) {
  const std::array<float, 3> result = read_channels(object, key, fallback);
  for (const float value : result) {
    FOVEA_CHECK(is_positive(value), kCorruptData, object.at(key).path(),
                ": expected 3 numbers above 0, got ", value);
  }
  return result;
}

double read_positive(const JsonView& object, std::string_view key, double fallback) {
  const auto value = object.find(key);
  if (!value) return fallback;
  FOVEA_CHECK(is_positive(value->as_number()), kCorruptData, value->path(),
              ": expected a number above 0, got ", value->as_number());
  return value->as_number();
}

void check_steps(const JsonView& file) {
  for (const char* step : {"do_resize", "do_rescale", "do_normalize"}) {
    FOVEA_CHECK(file.bool_or(step, true), kUnsupported, file.path(), ".", step,
                ": false is not supported");
  }
}

PixelScaling read_scaling(const JsonView& file, const PixelScaling& fallback) {
  check_steps(file);
  return {.image_mean = read_channels(file, "image_mean", fallback.image_mean),
          .image_std = read_positive_channels(file, "image_std", fallback.image_std),
          .rescale_factor = read_positive(file, "rescale_factor", fallback.rescale_factor)};
}

std::string differing_keys(const PixelScaling& a, const PixelScaling& b) {
  std::string keys;
  const auto compare = [&](const char* key, bool same) {
    if (!same) keys += cat(keys.empty() ? "" : ", ", key);
  };
  compare("image_mean", a.image_mean == b.image_mean);
  compare("image_std", a.image_std == b.image_std);
  compare("rescale_factor", a.rescale_factor == b.rescale_factor);
  return keys;
}

std::string video_refusal(const JsonView& file, const std::string& keys) {
  if (keys.empty()) return "";
  return cat(file.path(), ": videos with another ", keys, " than images are not supported");
}

bool has_size(const JsonView& file, std::int64_t side_px) {
  const auto size = file.find("size");
  if (!size) return true;
  return read_side(*size, "height", side_px) == side_px &&
         read_side(*size, "width", side_px) == side_px;
}

void check_size(const JsonView& file, std::int64_t side_px) {
  const auto size = file.find("size");
  if (!size) return;
  for (const char* key : {"height", "width"}) {
    const std::int64_t side = read_side(*size, key, side_px);
    FOVEA_CHECK(side == side_px, kUnsupported, size->path(), ".", key, ": ", side,
                " contradicts config.json, which says ", side_px);
  }
}

media::ResizeEngine resize_engine(const MediaOptions& media, media::ResizeEngine model_default) {
  switch (media.image_backend) {
    case ImageBackend::kPillow: return media::ResizeEngine::kPillow;
    case ImageBackend::kTorchvision: return media::ResizeEngine::kTorchvision;
    case ImageBackend::kModelDefault: return model_default;
  }
  return model_default;
}

std::string channel_text(const std::array<float, 3>& values) {
  return cat(values[0], ",", values[1], ",", values[2]);
}

std::vector<SourcedKey> sourced(const std::optional<JsonView>& file,
                                std::initializer_list<std::string_view> keys) {
  std::vector<SourcedKey> result;
  for (const std::string_view key : keys) {
    result.push_back({key, file && file->find(key) ? Source::kFile : Source::kSilent});
  }
  return result;
}

std::string sources_text(std::string_view modality, const std::optional<JsonView>& file,
                         std::span<const SourcedKey> keys) {
  std::string text = file ? cat(modality, ".file=\"", file->path(), '"') : "";
  const auto list = [&](Source source, std::string_view name) {
    const char* separator = "";
    for (const SourcedKey& entry : keys) {
      if (entry.source != source) continue;
      if (*separator == '\0') text += cat(text.empty() ? "" : " ", modality, ".", name, "=");
      text += cat(separator, entry.key);
      separator = ",";
    }
  };
  list(Source::kFile, "given");
  list(Source::kSilent, file ? "class_default" : "assumed");
  list(Source::kOption, "option");
  return text;
}

std::string sources_text(const std::optional<JsonView>& image,
                         std::initializer_list<std::string_view> image_keys,
                         const std::optional<JsonView>& video,
                         std::initializer_list<std::string_view> video_keys) {
  return cat(sources_text("image", image, sourced(image, image_keys)), " ",
             sources_text("video", video, sourced(video, video_keys)));
}

Assumption assumed(const std::optional<JsonView>& file, std::string_view key,
                   const std::string& value) {
  return {.given = file && file->find(key), .key = key, .assumed = cat(key, "=", value)};
}

std::string missing_text(const std::string& file, bool has_file,
                         std::initializer_list<Assumption> assumptions) {
  std::string keys;
  std::string values;
  for (const Assumption& assumption : assumptions) {
    if (assumption.given) continue;
    keys += cat(keys.empty() ? "" : ",", assumption.key);
    values += cat(" ", assumption.assumed);
  }
  if (keys.empty()) return "";
  return cat("missing=", file, has_file ? cat(" keys=", keys) : "", values);
}

std::string missing_text(const checkpoint::HfConfig& files,
                         std::initializer_list<Assumption> assumptions) {
  const auto file = files.image_processor();
  return missing_text(file ? file->path() : files.directory + "/preprocessor_config.json",
                      file.has_value(), assumptions);
}

void check_tower_size(const JsonView& file, std::string_view key, std::int64_t expected) {
  const std::int64_t got = read_size(file, key, expected);
  FOVEA_CHECK(got == expected, kCorruptData, file.path(), ".", key, ": ", got,
              " contradicts config.json, which says ", expected);
}

}  // namespace fovea::common
