#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/message.h"
#include "serve/rows/body_builder.h"
#include "serve/rows/row_output.h"
#include "serve/text/object_table.h"

namespace fovea::serve {

/// How a reply of embeddings carries its numbers. Source: vLLM, vllm/utils/serial_utils.py.
enum class VectorEncoding : std::uint8_t {
  kFloat,      ///< JSON numbers
  kBase64,     ///< base64 of the elements, in JSON
  kBytes,      ///< the elements back to back; the header `metadata` says what is where
  kBytesOnly,  ///< the same without the header
};

/// The form that a client asks for with `encoding_format`, `embed_dtype` and `endianness`.
struct VectorForm {
  VectorEncoding encoding = VectorEncoding::kFloat;
  ElementType type = ElementType::kFloat32;  ///< of kFloat always float32
  ByteOrder order = ByteOrder::kLittle;      ///< of kFloat always little
  std::string dtype_name = "float32";        ///< of what the client asked for, for the metadata
  std::string endianness = "native";         ///< likewise; native is little-endian
};

/// These members of a body.
struct VectorFormMembers {
  std::optional<std::string_view> encoding_format;
  std::optional<std::string_view> embed_dtype;
  std::optional<std::string_view> endianness;
};
inline constexpr std::array<std::string_view, 4> kVectorEncodings{"float", "base64", "bytes",
                                                                  "bytes_only"};
inline constexpr std::array<std::string_view, 3> kEndiannesses{"native", "little", "big"};
inline constexpr std::array<Member<VectorFormMembers>, 3> kVectorFormMembers{
    {{&VectorFormMembers::encoding_format,
      {.name = "encoding_format",
       .about = "Numbers, their base64, or their bytes as the body, with or without the header "
                "metadata",
       .choices = kVectorEncodings}},
     {&VectorFormMembers::embed_dtype,
      {.name = "embed_dtype",
       .about =
           "Element type of base64 and bytes: float32, float16, bfloat16, fp8_e4m3, fp8_e5m2"}},
     {&VectorFormMembers::endianness,
      {.name = "endianness",
       .about = "Byte order of base64 and bytes; native is little",
       .choices = kEndiannesses}}}};

/// What they say. @throws ApiError(400, "unsupported_dtype").
[[nodiscard]] VectorForm vector_form(const VectorFormMembers& members);

/// The members of a reply of vectors; of kFloat max_json_values bounds them.
struct VectorReplyHead : ReplyHead {
  std::string object = "embedding";  ///< of each entry: "embedding" or "pooling"
  std::int64_t prompt_tokens = 0;    ///< rows before pooling
};

/// The reply with these vectors, as vLLM's /v1/embeddings ("embedding": entries hold `embedding`)
/// and /pooling ("pooling": entries hold `data`). Bytes are not copied: their parts refer to what
/// the tensors refer to.
/// @param vectors of form.type and form.order; [columns] or [rows, columns].
/// @throws ApiError(400, "response_too_large_for_json") for more numbers than max_json_values,
/// ApiError(400, "metadata_header_too_large") for kBytes; both name what to ask for instead.
[[nodiscard]] Reply vector_reply(const VectorForm& form, const VectorReplyHead& head,
                                 const std::vector<RowTensor>& vectors);

/// The same for kBytes and kBytesOnly.
/// @param instead what to ask for if the metadata are too large for a header, for the message.
[[nodiscard]] Reply bytes_reply(const VectorForm& form, const VectorReplyHead& head,
                                const std::vector<RowTensor>& vectors, std::string_view instead);

/// Numbers of all tensors.
[[nodiscard]] std::size_t count_numbers(const std::vector<RowTensor>& tensors);

/// @param instead as above. @throws ApiError(400, "response_too_large_for_json") for more numbers
/// than a reply of JSON may hold.
void check_json_values(std::size_t values, std::int64_t max_values, std::string_view instead);

}  // namespace fovea::serve
