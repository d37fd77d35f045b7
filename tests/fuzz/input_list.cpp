// Any text as a list of inputs: what is accepted names items, one path each, in the order of the
// lines.
#include <algorithm>

#include "fuzz.h"
#include "inputs.h"
#include "support/memory_file.h"

using fovea::cli::Input;
using fovea::test::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fovea::test::MemoryFile file;
  const std::string_view text = fovea::test::text_of(data, size);
  if (text.find_first_of("*?[/.\\") != std::string_view::npos)
    return -1;  // would list directories of this machine
  file.write(text);
  const fovea::cli::InputArgument list{.text = "@" + file.path()};
  std::vector<Input> inputs;
  try {
    inputs = fovea::cli::expand_inputs({&list, 1}, {});
  } catch (const fovea::Error& error) {
    require(error.code() == fovea::ErrorCode::kNotFound);  // the list names nothing
    return 0;
  }
  require(!inputs.empty());
  require(std::ssize(inputs) <= std::ranges::count(text, '\n') + 1);
  for (const Input& input : inputs) {
    if (input.error) {
      require(input.error->code() != fovea::ErrorCode::kInternal);
    } else {
      require(input.item.paths().size() == 1);
    }
  }
  return 0;
}
