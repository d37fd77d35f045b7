// What the processor files of all families have in common.
#include "models/blocks/processor_file.h"

#include <cmath>
#include <vector>

#include "core/check.h"

namespace fovea::blocks {

namespace {

/// Subnormal numbers do not count as positive: what is divided by them is infinite.
bool is_positive(double value) { return std::isnormal(static_cast<float>(value)) && value > 0; }

}  // namespace

std::array<float, 3> read_channels(const JsonView& object, std::string_view key,
                                   const std::array<float, 3>& fallback) {
  const auto list = object.find(key);
  if (!list) return fallback;
  const std::vector<JsonView> values = list->elements();
  FOVEA_CHECK(values.size() == 3, kCorruptData, list->path(), ": expected 3 numbers, got ",
              values.size());
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

std::string channel_text(const std::array<float, 3>& values) {
  return cat(values[0], ",", values[1], ",", values[2]);
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

}  // namespace fovea::blocks
