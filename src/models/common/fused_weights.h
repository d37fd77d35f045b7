#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/tower/checkpoint/weight_source.h"
#include "models/common/weight_names.h"

namespace fovea::common {

/// Stored layers whose features become those of one, for example q, k and v, and the zeros that
/// fill them up.
struct FusedWeights {
  std::vector<std::string> parts = {};  ///< names, in the order of their rows
  std::int64_t part_rows = 0;           ///< of each
  std::vector<std::int64_t> in_sizes;   ///< of each row
  std::int64_t row_multiple = 1;        ///< to which the rows of a part are filled up
  std::int64_t column_multiple = 1;     ///< to which the columns are filled up
  std::string_view separator = ".";     ///< between a name and "weight" or "bias"
  std::vector<std::int64_t> rows = {};  ///< of the result, as rows of the parts, which may occur
                                        ///< more than once; empty: in order
  std::vector<bool> biased = {};        ///< which parts have a bias, the first among them; that of
                                        ///< others is 0; empty: all

  /// The shape of the weight of a part.
  [[nodiscard]] Shape part_shape() const;
  /// The sizes of the result, filled up.
  [[nodiscard]] std::int64_t in_features() const;
  [[nodiscard]] std::int64_t out_features() const;
  [[nodiscard]] bool has_bias(std::size_t part) const { return biased.empty() || biased[part]; }
};

/// Elements as they are stored.
struct StoredBytes {
  DType dtype = DType::kF32;
  std::vector<std::byte> bytes;
};

/// The tensors `<part><suffix>` of `shape` each, one after the other, filled up; zeros for
/// the bias of a part that has none.
/// @param shape part_shape() for weights, [part_rows] for biases.
/// @throws Error(kUnsupported) if they have different dtypes, and as WeightSource::tensor.
[[nodiscard]] StoredBytes read_fused(const checkpoint::WeightSource& source,
                                     const FusedWeights& fused, const WeightNames& names,
                                     std::string_view suffix, const Shape& shape);

/// The same behind those of layers that are in `to` already, of the same dtype.
/// @throws as read_fused.
void append_fused(const checkpoint::WeightSource& source, const FusedWeights& fused,
                  const WeightNames& names, std::string_view suffix, const Shape& shape,
                  StoredBytes& to);

}  // namespace fovea::common
