#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/export.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/weight_tensors.h"

namespace fovea::checkpoint {

/// The tensors of a checkpoint: one file, or the shards of an index, or tensors that the caller
/// hands over, or none at all (dummy weights). Only the shards that hold a tensor somebody asks for
/// are opened. Thread-safe after construction.
class FOVEA_API WeightSource {
 public:
  /// A tensor as listed, without its data.
  struct Listing {
    std::string name;
    std::string dtype;  ///< as in the file
    std::vector<std::int64_t> shape;
    std::string file;
    /// The tensor that has the scales of a matrix of F8_E4M3, "<name>_scale" or
    /// "<name>_scale_inv"; empty: there is none that fits.
    std::string scales = {};
  };

  /// Opens `directory`: model.safetensors, else model.safetensors.index.json and the shards it
  /// names, else the only *.safetensors file there.
  /// @throws Error(kNotFound) if there is none of them, Error(kCorruptData) for a broken index and
  /// shard names that could lead out of the directory, and what SafetensorsFile throws.
  [[nodiscard]] static WeightSource open(const std::string& directory);
  /// Weights for benchmarks: any tensor of any shape exists; bf16 values that are nearly normal
  /// with mean 0 and standard deviation 0.02 (dummy_weights.h), a function of seed and name alone.
  /// Norm weights (rank 1, name ending in ".weight") have mean 1.
  [[nodiscard]] static WeightSource dummy(std::uint64_t seed);
  /// Tensors that another loader has. @param directory of the model's other files.
  /// @param tensors must outlive the object.
  /// @throws Error(kInvalidArgument) for two tensors of one name and without a function that reads.
  [[nodiscard]] static WeightSource handed_over(const std::string& directory,
                                                const WeightTensors& tensors);

  WeightSource(WeightSource&&) noexcept;
  WeightSource& operator=(WeightSource&&) noexcept;
  ~WeightSource();

  [[nodiscard]] bool is_dummy() const noexcept;
  /// Whether tensors come from files.
  [[nodiscard]] bool is_stored() const noexcept;
  /// The directory of the model; empty for dummy weights.
  [[nodiscard]] const std::string& directory() const noexcept;
  /// Names of all tensors, ascending; empty for dummy weights. Opens no shard.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept;
  /// The file that is said to hold one of names(), for messages: "tensors handed over" where it is
  /// none. Opens no shard.
  [[nodiscard]] const std::string& file_of(const std::string& name) const;
  /// Header entry of a tensor, or nothing if no file is said to hold it. Opens the shard's header.
  /// @throws Error(kNotFound) if the shard is missing, Error(kCorruptData) if it does not hold what
  /// the index says.
  [[nodiscard]] std::optional<Listing> listing(const std::string& name) const;
  /// A tensor's data in host memory, valid until the next call from the same thread. It has the
  /// shape and dtype of its listing, which the caller compares with what it wants; one with scales
  /// comes as float32, multiplied by them. For dummy weights `shape` decides.
  /// @throws Error(kNotFound), Error(kUnsupported) for dtypes Fovea does not compute with,
  /// Error(kIo), also if the file has shrunk, as listing() does, and as
  /// check_interrupt() does; ThrownByCaller with what WeightTensors::read throws.
  [[nodiscard]] ConstTensorView tensor(const std::string& name, const Shape& shape) const;

 private:
  struct Impl;
  explicit WeightSource(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Finds the only name of `weights` that ends with anchor + suffix, the anchor at the start of the
/// name or after a dot, and returns what stands in front of the suffix: "model.visual." for the
/// name "model.visual.patch_embed.proj.weight", anchor "visual." and suffix
/// "patch_embed.proj.weight". Nothing if no name fits.
/// @throws Error(kCorruptData) if several fit, naming the directory and the files that hold them.
[[nodiscard]] FOVEA_API std::optional<std::string> find_prefix(const WeightSource& weights,
                                                               std::string_view anchor,
                                                               std::string_view suffix);

}  // namespace fovea::checkpoint
