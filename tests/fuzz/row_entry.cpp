// Any bytes as rows that processes share: what is accepted lies in the file, and is the same after
// it was written again.
#include "rows/shared/row_entry.h"

#include <utility>

#include "fuzz.h"

using fovea::Embedding;
using fovea::RowBytes;
using fovea::RowEntry;
using fovea::test::require;

namespace {

std::span<const std::byte> bytes_of(const RowEntry& entry) {
  const fovea::ConstTensorView rows = entry.rows();
  return {static_cast<const std::byte*>(rows.data), rows.bytes()};
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  const std::optional<RowEntry> entry = fovea::decode_entry("fuzz", RowBytes(file));
  if (!entry) return 0;
  require(entry->offset + bytes_of(*entry).size() == size);
  Embedding item = entry->facts;
  item.data = RowBytes(bytes_of(*entry));
  const std::vector<std::byte> again = fovea::encode_entry("fuzz", item);
  const std::optional<RowEntry> same = fovea::decode_entry("fuzz", RowBytes(std::span(again)));
  require(same && std::ranges::equal(bytes_of(*same), bytes_of(*entry)));
  require(same->facts.grid_thw == item.grid_thw && same->facts.dtype == item.dtype &&
          same->facts.num_frames == item.num_frames &&
          same->facts.timestamps.size() == item.timestamps.size());
  return 0;
}
