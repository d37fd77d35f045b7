#include "serve/routes/output_options.h"

#include <algorithm>
#include <utility>

#include "serve/api_error.h"

namespace fovea::serve {
namespace {

constexpr std::array<std::string_view, 6> kFormats{"json", "base64",      "torch",
                                                   "npy",  "safetensors", "raw"};
constexpr std::array<std::string_view, 2> kOrders{"little", "big"};
constexpr std::array<std::string_view, 2> kNamings{"items", "hf"};
constexpr std::array<std::string_view, 4> kIncludes{"grid", "timestamps", "part", "timings"};
constexpr std::array<bool OutputOptions::*, 4> kIncluded{
    &OutputOptions::grid, &OutputOptions::timestamps, &OutputOptions::part,
    &OutputOptions::timings};

struct OutputBody : BodyObject, VectorMembers {
  std::optional<std::string_view> format;
  std::optional<std::string_view> dtype;
  std::optional<std::string_view> endianness;
  std::optional<std::string_view> naming;
  std::optional<bool> normalize;
  std::optional<std::vector<std::string_view>> include;
};

constexpr std::array<Member<OutputBody>, 8> kOutputMembers{
    {{&OutputBody::format, {.name = "format", .about = "Form of the rows", .choices = kFormats}},
     {&OutputBody::dtype,
      {.name = "dtype",
       .about =
           "Element type: float32, float16, bfloat16, fp8_e4m3, fp8_e5m2, or auto, that of the "
           "checkpoint where the format holds it"}},
     {&OutputBody::endianness,
      {.name = "endianness", .about = "Byte order of base64 and raw", .choices = kOrders}},
     {&OutputBody::pooling,
      {.name = "pooling", .about = "How one vector is made of rows", .choices = kPoolings}},
     {&OutputBody::deepstack,
      {.name = "deepstack",
       .about = "Deepstack levels: beside the main embedding, as tensors of their own, or left out",
       .choices = kDeepstacks}},
     {&OutputBody::naming,
      {.name = "naming", .about = "Names of tensors in safetensors", .choices = kNamings}},
     {&OutputBody::normalize, {.name = "normalize", .about = "Whether rows get the L2 norm 1"}},
     {&OutputBody::include,
      {.name = "include",
       .about = "What items of the reply have beside their rows; without it the grid",
       .choices = kIncludes}}}};
constexpr ObjectTable<OutputBody> kOutput{"Output", kOutputMembers, Others::kRefused};

/// The value that has a name, of an enum whose values are in the order of the names.
template <class Value, std::size_t kCount>
void choose(const std::array<std::string_view, kCount>& names,
            const std::optional<std::string_view>& name, Value& value) {
  if (!name) return;
  value = static_cast<Value>(std::ranges::find(names, *name) - names.begin());
}

}  // namespace

Pooling pooling_of(const std::optional<std::string_view>& name, Pooling otherwise) {
  choose(kPoolings, name, otherwise);
  return otherwise;
}

Deepstack deepstack_of(const std::optional<std::string_view>& name, Pooling pooling) {
  Deepstack deepstack = pooling == Pooling::kNone ? Deepstack::kConcat : Deepstack::kMain;
  choose(kDeepstacks, name, deepstack);
  return deepstack;
}

void check_pooling(const RowOptions& rows, const Service& service) {
  const std::string& file = service.model().report.embedding_file;
  if (rows.pooling == Pooling::kNone || file.empty()) return;
  throw ApiError(400, "vectors_need_language_model",
                 "the checkpoint is an embedding model (" + file +
                     "), whose vectors its language model makes; expected a route for rows of its "
                     "vision tower: /v1/encode, or /pooling with the task token_embed");
}

OutputOptions read_output(const std::optional<JsonView>& output, const std::string* accept) {
  OutputOptions options;
  if (accept != nullptr && accept->find("application/vnd.safetensors") != accept->npos)
    options.format = ReplyFormat::kSafetensors;
  if (!output) return options;
  const OutputBody body = read_object(kOutput, *output, "output");
  choose(kFormats, body.format, options.format);
  const std::string_view dtype = body.dtype.value_or("auto");
  options.dtype_is_auto = dtype == "auto";
  if (!options.dtype_is_auto) options.rows.type = element_type(dtype, body.path("dtype"));
  choose(kOrders, body.endianness, options.rows.order);
  options.rows.pooling = pooling_of(body.pooling, options.rows.pooling);
  options.rows.deepstack = deepstack_of(body.deepstack, options.rows.pooling);
  choose(kNamings, body.naming, options.naming);
  options.rows.normalize = body.normalize.value_or(false);
  if (body.include) options.grid = false;
  for (const std::string_view name : body.include.value_or(std::vector<std::string_view>())) {
    options.*kIncluded[static_cast<std::size_t>(std::ranges::find(kIncludes, name) -
                                                kIncludes.begin())] = true;
  }
  return options;
}

JsonObject output_schema(SchemaSet& named) { return describe(kOutput, named); }

void add_output_members(std::vector<QueryMember>& members) {
  add_query_members(kOutput, "output.", members);
}

void choose_dtype(OutputOptions& options, RowDType checkpoint) {
  if (!options.dtype_is_auto) return;
  options.dtype_is_auto = false;
  const bool is_npy = options.format == ReplyFormat::kNpy && checkpoint == RowDType::kBFloat16;
  if (options.format != ReplyFormat::kJson && !is_npy) options.rows.type = element_type(checkpoint);
}

}  // namespace fovea::serve
