// Any bytes as model.safetensors.index.json beside one shard: only what that shard holds is found,
// and no name leads out of the directory.
#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "checkpoint/safetensors.h"
#include "fovea/tower/checkpoint/weight_source.h"
#include "fuzz.h"
#include "support/temporary_directory.h"

using fovea::checkpoint::WeightSource;
using fovea::test::accepts;
using fovea::test::require;

namespace {

constexpr const char* kShard = "a.safetensors";
constexpr const char* kTensor = "x";

/// A directory with one shard, and the same shard above it, out of reach.
struct Checkpoint {
  Checkpoint() {
    const std::array<float, 2> values{1, 2};
    const auto* data = reinterpret_cast<const std::byte*>(values.data());
    const std::array tensors{
        fovea::checkpoint::OutputTensor{kTensor, {data, fovea::DType::kF32, {2}}}};
    std::filesystem::create_directory(path);
    for (const std::string& folder : {path, root.path()})
      fovea::checkpoint::write_safetensors(folder + "/" + kShard, tensors, {});
  }
  fovea::test::TemporaryDirectory root;
  const std::string path = root / "model";
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Checkpoint checkpoint;
  fovea::test::write_text(checkpoint.path + "/model.safetensors.index.json",
                          fovea::test::text_of(data, size));
  std::optional<WeightSource> source;
  if (!accepts([&] { source = WeightSource::open(checkpoint.path); })) return 0;
  require(std::ranges::is_sorted(source->names(), std::ranges::less_equal{}));  // each name once
  for (const std::string& name : source->names()) {
    accepts([&] {
      const auto listing = source->listing(name);
      require(listing && listing->name == kTensor && listing->file == kShard);
      require(source->tensor(name, {}).shape == fovea::Shape{2});
    });
  }
  return 0;
}
