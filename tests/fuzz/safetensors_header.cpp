// Any bytes as a safetensors file: what is accepted tiles the data.
#include "checkpoint/safetensors.h"

#include "fuzz.h"

using fovea::checkpoint::SafetensorsHeader;
using fovea::checkpoint::TensorEntry;
using fovea::test::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  SafetensorsHeader header;
  if (!fovea::test::accepts(
          [&] { header = fovea::checkpoint::parse_safetensors_header(file, size, "fuzz"); }))
    return 0;
  require(header.data_offset >= 8 && header.data_offset <= size);
  std::uint64_t covered = 0;
  for (const TensorEntry& entry : header.tensors) {
    require(entry.begin == covered && entry.begin <= entry.end);
    for (const std::int64_t extent : entry.shape) require(extent >= 0);
    covered = entry.end;
  }
  require(header.data_offset + covered == size);
  return 0;
}
