// Any text as sizes on a command line: accepted sizes are printed in a form that reads back as the
// same sizes, and a file that holds the text means the same.
#include "flags/sizes.h"

#include "errors.h"
#include "fuzz.h"
#include "support/memory_file.h"

using fovea::ItemSize;
using fovea::cli::parse_sizes;
using fovea::test::require;

namespace {

bool accepts(const std::string& text, std::vector<ItemSize>& sizes) {
  return fovea::test::accepts<fovea::cli::UsageError>([&] { sizes = parse_sizes(text); });
}

std::string text_of(const std::vector<ItemSize>& sizes) {
  std::string text;
  for (const ItemSize& size : sizes) text += (text.empty() ? "" : ",") + fovea::cli::to_text(size);
  return text;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fovea::test::MemoryFile file;
  const std::string text(fovea::test::text_of(data, size));
  if (text.starts_with('@')) return -1;  // the name of a file
  file.write(text);
  std::vector<ItemSize> in_file;
  std::vector<ItemSize> given;
  const bool file_accepted = accepts("@" + file.path(), in_file);
  if (!accepts(text, given)) return 0;
  require(!given.empty());
  for (const ItemSize& one : given)
    require(one.width_px >= 1 && one.height_px >= 1 && one.num_frames >= 1);
  require(text_of(parse_sizes(text_of(given))) == text_of(given));
  if (text.find('\n') == std::string::npos)  // a line break ends a size in a file only
    require(file_accepted && text_of(in_file) == text_of(given));
  return 0;
}
