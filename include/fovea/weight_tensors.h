#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace fovea {

/// Weights that another loader has in memory, on whatever device: for Engine::from_weights().
struct WeightTensors {
  /// A tensor as the header of a safetensors file would list it.
  struct Listing {
    std::string name;  ///< as in the checkpoint; what stands before the tower's own part is free
    /// "F32", "F16", "BF16", or "F8_E4M3" of matrices with a tensor of scales called
    /// "<name>_scale" or "<name>_scale_inv"; of tensors outside the tower any word.
    std::string dtype;
    std::vector<std::int64_t> shape;
  };

  std::vector<Listing> listings;  ///< in any order, also of tensors that the tower does not use
  /// Writes the elements of listings[index], row-major, to `out`, which has their bytes. The call
  /// asks for tensors of the tower alone, on threads of its own or of the engine, one at a time,
  /// and for none when it has ended. What the function throws leaves the call as it is.
  std::function<void(std::size_t index, std::span<std::byte> out)> read;
};

}  // namespace fovea
