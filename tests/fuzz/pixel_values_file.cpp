// Any header and data as a safetensors file of pixel values: what is accepted has the patches of
// its grid and the bytes of its patches. Input: the header, a line "---", the data.
#include "core/row_dtype.h"
#include "fovea/media.h"
#include "fuzz.h"
#include "support/memory_file.h"

using fovea::MediaItem;
using fovea::test::require;

namespace {

/// Prepends the length of the header, which mutated inputs would hardly ever get right.
std::string safetensors_of(std::string_view input) {
  constexpr std::string_view kSeparator = "\n---\n";
  const std::string_view header = input.substr(0, input.find(kSeparator));
  const std::string_view rest = input.substr(header.size());
  std::string file;
  for (std::size_t i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> 8 * i);
  return file.append(header).append(rest.substr(std::min(rest.size(), kSeparator.size())));
}

void check_item(const MediaItem& item) {
  const auto& [patches, grid_thw] = std::get<fovea::PixelValues>(item.source);
  const auto& [t, h, w] = grid_thw;
  require(t >= 1 && h >= 1 && w >= 1 && t * h * w == patches.num_rows);
  const auto row_bytes =
      static_cast<std::size_t>(patches.row_width) * size_of(fovea::to_dtype(patches.dtype));
  require(item.content().size() == static_cast<std::size_t>(patches.num_rows) * row_bytes);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fovea::test::MemoryFile file;
  file.write(safetensors_of(fovea::test::text_of(data, size)));
  std::vector<MediaItem> items;
  if (!fovea::test::accepts([&] { items = fovea::pixel_values_file(file.path()); })) return 0;
  require(!items.empty());
  for (const MediaItem& item : items) check_item(item);
  return 0;
}
