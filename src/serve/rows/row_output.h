#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/embedding.h"
#include "serve/http/message.h"

namespace fovea::serve {

/// Element types of replies.
enum class ElementType : std::uint8_t { kFloat32, kFloat16, kBFloat16, kFp8E4M3, kFp8E5M2 };
enum class ByteOrder : std::uint8_t { kLittle, kBig };
/// How the rows of an item become one vector.
enum class Pooling : std::uint8_t { kNone, kMean, kMax, kFirst, kLast };
/// The treatment of the deepstack levels beside the main embedding.
enum class Deepstack : std::uint8_t {
  kConcat,  ///< [rows, hidden * (1 + levels)]
  kSplit,   ///< a tensor [rows, hidden] for the main embedding and for each level
  kMain,    ///< [rows, hidden]
};

/// The name as requests spell it: "float32", "bfloat16", "fp8_e4m3".
[[nodiscard]] std::string_view to_string(ElementType type);
[[nodiscard]] std::size_t size_of(ElementType type);
/// @throws ApiError(400, "unsupported_dtype") for another name.
[[nodiscard]] ElementType element_type(std::string_view name, const std::string& param);
[[nodiscard]] ElementType element_type(RowDType dtype);

/// The changes to the rows of an item before they are sent, in this order.
struct RowOptions {
  Deepstack deepstack = Deepstack::kConcat;
  Pooling pooling = Pooling::kNone;
  std::optional<std::int64_t> dimensions;  ///< keeps the first values of each vector
  bool normalize = false;                  ///< each vector to L2 norm 1; zero vectors stay
  ElementType type = ElementType::kFloat32;
  ByteOrder order = ByteOrder::kLittle;
};

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

/// Appends the numbers of a float32 little-endian tensor as JSON: nested arrays in its shape, each
/// number the shortest text that reads back as the same float.
void append_json_numbers(const RowTensor& tensor, std::string& out);

}  // namespace fovea::serve
