#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "serve/rows/reply_formats.h"
#include "serve/service/service.h"
#include "serve/text/object_table.h"

namespace fovea::serve {

/// The names of values, in the order of Pooling and of Deepstack; a reply of one tensor per item
/// has no "split".
inline constexpr std::array<std::string_view, 5> kPoolings{"none", "mean", "max", "first", "last"};
inline constexpr std::array<std::string_view, 3> kDeepstacks{"concat", "split", "main"};
inline constexpr std::array<std::string_view, 2> kVectorDeepstacks{"concat", "main"};

/// The members that say how one vector is made of an item's rows.
struct VectorMembers {
  std::optional<std::string_view> pooling;
  std::optional<std::string_view> deepstack;
};
inline constexpr MemberFacts kDeepstackFacts{
    .name = "deepstack",
    .about =
        "Deepstack levels: beside the main embedding or left out; vectors leave them out, "
        "rows have them, unless this says otherwise",
    .choices = kVectorDeepstacks};
inline constexpr std::array<Member<VectorMembers>, 2> kVectorMembers{
    {{&VectorMembers::pooling,
      {.name = "pooling", .about = "How one vector is made of rows", .choices = kPoolings}},
     {&VectorMembers::deepstack, kDeepstackFacts}}};

/// One of kPoolings. @param name absent: `otherwise`.
[[nodiscard]] Pooling pooling_of(const std::optional<std::string_view>& name, Pooling otherwise);

/// One of kDeepstacks. @param name absent: a vector is made of the main embedding alone, rows hold
/// the levels beside it.
[[nodiscard]] Deepstack deepstack_of(const std::optional<std::string_view>& name, Pooling pooling);

/// Reads the member `output` of a request; without it what `accept` asks for: safetensors for
/// "application/vnd.safetensors", JSON otherwise. @param accept the header; null: none.
/// @throws ApiError(400): "invalid_value", "unsupported_dtype", "unknown_field".
/// Source: docs/serving.md, "Formats".
[[nodiscard]] OutputOptions read_output(const std::optional<JsonView>& output,
                                        const std::string* accept);

/// The schema of `output`, and its members for a query: "output.format".
[[nodiscard]] JsonObject output_schema(SchemaSet& named);
void add_output_members(std::vector<QueryMember>& members);

/// Replaces the type "auto": that of the checkpoint, float32 where the format does not hold it.
void choose_dtype(OutputOptions& options, RowDType checkpoint);

/// @throws ApiError(400, "vectors_need_language_model") if rows are to be pooled and the checkpoint
/// is an embedding model: its vectors are others.
void check_pooling(const RowOptions& rows, const Service& service);

}  // namespace fovea::serve
