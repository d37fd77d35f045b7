#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor_view.h"

namespace fovea::checkpoint {

/// The tensors of a checkpoint: one file, or the shards of an index, or none at all (dummy
/// weights). Only the shards that hold a tensor somebody asks for are opened. Thread-safe after
/// construction.
class WeightSource {
 public:
  /// A tensor as listed, without its data.
  struct Listing {
    std::string name;
    std::string dtype;  ///< as in the file
    std::vector<std::int64_t> shape;
    std::string file;
  };

  /// Opens `directory`: model.safetensors, or model.safetensors.index.json and the shards it names,
  /// or the only *.safetensors file there.
  /// @throws Error(kNotFound) if there is none of them, Error(kCorruptData) for a broken index.
  [[nodiscard]] static WeightSource open(const std::string& directory);
  /// Weights for benchmarks: any tensor of any shape exists; normal values of standard deviation
  /// 0.02 rounded to bf16, a function of seed and name alone. Norm weights ("norm" in the name,
  /// ".weight", rank 1) are near 1.
  [[nodiscard]] static WeightSource dummy(std::uint64_t seed);

  WeightSource(WeightSource&&) noexcept;
  WeightSource& operator=(WeightSource&&) noexcept;
  ~WeightSource();

  [[nodiscard]] bool is_dummy() const noexcept;
  /// Names of all tensors, ascending; empty for dummy weights. Opens no shard.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept;
  /// Header entry of a tensor, or nothing. Opens the shard's header.
  [[nodiscard]] std::optional<Listing> listing(const std::string& name) const;
  /// A tensor's data in host memory, possibly unaligned; valid as long as the source. For dummy
  /// weights `shape` decides, and the data lives until the next call from the same thread.
  /// @throws Error(kNotFound), Error(kUnsupported) for dtypes Fovea does not compute with.
  [[nodiscard]] ConstTensorView tensor(const std::string& name, const Shape& shape) const;

 private:
  struct Impl;
  explicit WeightSource(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The text in front of `suffix` in the only name that ends with it, for example "model.visual."
/// for "model.visual.patch_embed.proj.weight" and suffix "patch_embed.proj.weight" preceded by
/// `anchor` "visual.". Nothing if no name fits.
/// @throws Error(kCorruptData) if several fit.
[[nodiscard]] std::optional<std::string> find_prefix(const std::vector<std::string>& names,
                                                     std::string_view anchor,
                                                     std::string_view suffix);

}  // namespace fovea::checkpoint
