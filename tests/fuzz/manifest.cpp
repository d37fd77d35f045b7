// Any text as the manifest of a shard: what counts ends with a line, and is read again as it was.
#include <string>

#include "fovea/error.h"
#include "fuzz.h"
#include "shards/manifest.h"
#include "support/memory_file.h"

using fovea::cli::ItemLine;
using fovea::cli::PartLine;
using fovea::test::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fovea::test::MemoryFile file;
  const std::string_view text = fovea::test::text_of(data, size);
  file.write(text);
  try {
    const fovea::cli::ManifestEnd end = fovea::cli::read_manifest(
        file.path(), {.part = [](const PartLine& part, const std::vector<ItemLine>& items,
                                 const std::vector<std::int64_t>& offsets) {
          require(std::ssize(items) == part.items && offsets.size() == items.size());
          for (const ItemLine& item : items) {
            const std::string line = to_text(item);
            require(to_text(fovea::cli::parse_manifest_line(line, "again")) == line);
          }
        }});
    const auto bytes = static_cast<std::size_t>(end.bytes);
    require(bytes <= text.size() && end.torn == (bytes < text.size()));
    require(bytes == 0 || text[bytes - 1] == '\n');
    require(end.header.has_value() == (bytes > 0));
  } catch (const fovea::Error& error) {
    require(error.code() == fovea::ErrorCode::kCorruptData);
  }
  return 0;
}
