// Sizes of towers, read with bounds.
#include "models/blocks/config_reader.h"

#include "core/check.h"

namespace fovea::blocks {

std::int64_t as_size(const JsonView& value, std::int64_t most) {
  if (value.is_array()) {
    const std::vector<JsonView> list = value.elements();
    FOVEA_CHECK(!list.empty(), kCorruptData, value.path(),
                ": expected a number, got an empty list");
    return as_size(list.front(), most);
  }
  const std::int64_t number = value.as_int();
  FOVEA_CHECK(number >= 1 && number <= most, kCorruptData, value.path(),
              ": expected a number in [1, ", most, "], got ", number);
  return number;
}

std::int64_t read_size(const JsonView& object, std::string_view key, std::int64_t fallback,
                       std::int64_t most) {
  const auto value = object.find(key);
  return value ? as_size(*value, most) : fallback;
}

std::vector<std::int64_t> read_block_indexes(const JsonView& list, std::int64_t depth) {
  const std::vector<JsonView> entries = list.elements();
  FOVEA_CHECK(static_cast<std::int64_t>(entries.size()) <= depth, kCorruptData, list.path(),
              ": expected at most ", depth, " block indexes, got ", entries.size());
  std::vector<std::int64_t> indexes;
  for (const JsonView& entry : entries) {
    indexes.push_back(entry.as_int());
    FOVEA_CHECK(indexes.back() >= 0 && indexes.back() < depth, kCorruptData, entry.path(),
                ": expected a block index below ", depth, ", got ", indexes.back());
  }
  return indexes;
}

void check_heads(const JsonView& object, std::int64_t width, std::int64_t heads) {
  FOVEA_CHECK(width % heads == 0, kCorruptData, object.path(), ": ", heads,
              " heads do not divide a width of ", width);
  FOVEA_CHECK(width / heads % 8 == 0, kUnsupported, object.path(), ": head size ", width / heads,
              " (", width, " / ", heads, ") is not a multiple of 8");
}

}  // namespace fovea::blocks
