// Any bytes as the description of an embedding by another rank: what is accepted is the same after
// it was described again, and has no more rows than allowed.
#include "ranks/description.h"

#include "fuzz.h"

using fovea::test::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try {
    const fovea::Embedding item = fovea::ranks::read_description(bytes, kMostBytes);
    require(item.data.size() <= kMostBytes);
    std::vector<std::byte> again;
    fovea::ranks::append_description(item, again);
    require(again.size() + bytes.size() <= size);
    std::span<const std::byte> left = again;
    const fovea::Embedding same = fovea::ranks::read_description(left, kMostBytes);
    require(left.empty() && same.rows == item.rows && same.width == item.width &&
            same.retained == item.retained && same.grid_thw == item.grid_thw);
  } catch (const fovea::Error& error) {
    require(error.code() == fovea::ErrorCode::kCorruptData);
  }
  return 0;
}
