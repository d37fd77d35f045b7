// Any bytes as a torch archive: an accepted tensor lies in the file and is the same after it was
// written again.
#include "fovea/row_formats.h"
#include "fuzz.h"

using fovea::StoredTensor;
using fovea::test::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  StoredTensor tensor;
  if (!fovea::test::accepts([&] { tensor = fovea::read_torch(file, "fuzz"); })) return 0;
  require(tensor.data.empty() || (tensor.data.data() >= file.data() &&
                                  tensor.data.data() + tensor.data.size() <= file.data() + size));
  const std::vector<std::byte> again =
      fovea::in_memory([&](const fovea::ByteSink& sink) { fovea::write_torch(tensor, sink); });
  const StoredTensor same = fovea::read_torch(again, "again");
  require(same.type == tensor.type && same.shape == tensor.shape &&
          std::ranges::equal(same.data, tensor.data));
  return 0;
}
