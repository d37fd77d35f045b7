// Any header and data as a safetensors file of pixel values: what is accepted has the patches of
// its grid and the bytes of its patches. Input: the header, a line "---", the data.
#include <array>

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

void check_patches(const MediaItem& item, const std::array<std::int64_t, 3>& grid_thw,
                   std::int64_t num_patches, std::size_t patch_bytes) {
  const auto& [t, h, w] = grid_thw;
  require(t >= 1 && h >= 1 && w >= 1 && t * h * w == num_patches);
  require(item.content().size() == static_cast<std::size_t>(num_patches) * patch_bytes);
}

void check_item(const MediaItem& item) {
  if (const auto* const pixels = std::get_if<fovea::PixelBytes>(&item.source)) {
    check_patches(item, pixels->grid_thw, pixels->num_patches,
                  static_cast<std::size_t>(pixels->patch_dim));
    return;
  }
  const auto& [patches, grid_thw] = std::get<fovea::PixelValues>(item.source);
  const std::size_t value_bytes = size_of(fovea::to_dtype(patches.dtype));
  check_patches(item, grid_thw, patches.num_rows,
                static_cast<std::size_t>(patches.row_width) * value_bytes);
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
