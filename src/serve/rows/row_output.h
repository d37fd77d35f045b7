#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/embedding.h"
#include "serve/http/message.h"
#include "serve/rows/element_type.h"

namespace fovea::serve {

/// How the rows of an item become one vector.
enum class Pooling : std::uint8_t { kNone, kMean, kMax, kFirst, kLast };
/// The treatment of the deepstack levels beside the main embedding.
enum class Deepstack : std::uint8_t {
  kConcat,  ///< [rows, hidden * (1 + levels)]
  kSplit,   ///< a tensor [rows, hidden] for the main embedding and for each level
  kMain,    ///< [rows, hidden]
};

/// The changes to the rows of an item before they are sent, in this order.
struct RowOptions {
  Deepstack deepstack = Deepstack::kConcat;
  Pooling pooling = Pooling::kNone;
  std::optional<std::int64_t> dimensions;  ///< keeps the first values of each vector
  bool normalize = false;                  ///< each vector to L2 norm 1; zero vectors stay
  ElementType type = ElementType::kFloat32;
  ByteOrder order = ByteOrder::kLittle;
};

/// Characters that a number of rows has in JSON, at most but for some beyond 1e12: a sign, nine
/// digits, a point, an exponent, a comma.
inline constexpr double kJsonNumberBytes = 16;

/// Numbers ready to be sent: row-major, one element after the other.
struct RowTensor {
  std::vector<std::int64_t> shape;  ///< [rows, columns], or [columns] of a pooled item
  ElementType type = ElementType::kFloat32;
  ByteOrder order = ByteOrder::kLittle;
  BodyPart bytes;
};

/// The type to ask the engine for, so that make_tensors() rounds once: the rows' own type if
/// nothing is computed from them, float32 otherwise.
[[nodiscard]] RowDType engine_dtype(const RowOptions& options);

/// Whether make_tensors() makes bytes of its own, and does not refer to the item.
[[nodiscard]] bool copies_rows(const RowOptions& options);

/// The tensors of an item: one, or with Deepstack::kSplit the main embedding and each level. Rows
/// that need no change are not copied: the tensor then refers to the item. Means and norms are
/// summed in double, and numbers rounded once, to nearest even. fp8 does not saturate: beyond 464
/// E4M3 is NaN, from 61440 on E5M2 is infinite, because consumers of vLLM get these from torch.
/// @param item in engine_dtype(options). @param hidden columns of the main embedding.
/// @throws ApiError(500, "non_finite_output") if a value of the item is infinite or NaN,
/// ApiError(400, "invalid_value") for dimensions beyond the columns, with the number of columns,
/// and for pooling of an item without rows.
[[nodiscard]] std::vector<RowTensor> make_tensors(const std::shared_ptr<const Embedding>& item,
                                                  std::int64_t hidden, const RowOptions& options);

/// The first of make_tensors() of each item: its vector, or all its rows. @throws as that.
[[nodiscard]] std::vector<RowTensor> first_tensors(
    std::span<const std::shared_ptr<const Embedding>> items, std::int64_t hidden,
    const RowOptions& options);

/// Appends the numbers of a float32 little-endian tensor as JSON: nested arrays in its shape, each
/// number the shortest text that reads back as the same float.
void append_json_numbers(const RowTensor& tensor, std::string& out);

}  // namespace fovea::serve
