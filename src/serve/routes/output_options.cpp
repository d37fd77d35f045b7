#include "serve/routes/output_options.h"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "serve/api_error.h"

namespace fovea::serve {
namespace {

template <typename Value, std::size_t kCount>
using Names = std::array<std::pair<std::string_view, Value>, kCount>;

constexpr Names<ReplyFormat, 6> kFormats{{{"json", ReplyFormat::kJson},
                                          {"base64", ReplyFormat::kBase64},
                                          {"torch", ReplyFormat::kTorch},
                                          {"npy", ReplyFormat::kNpy},
                                          {"safetensors", ReplyFormat::kSafetensors},
                                          {"raw", ReplyFormat::kRaw}}};
constexpr Names<ByteOrder, 2> kOrders{{{"little", ByteOrder::kLittle}, {"big", ByteOrder::kBig}}};
constexpr Names<Pooling, 5> kPoolings{{{"none", Pooling::kNone},
                                       {"mean", Pooling::kMean},
                                       {"max", Pooling::kMax},
                                       {"first", Pooling::kFirst},
                                       {"last", Pooling::kLast}}};
constexpr Names<Deepstack, 3> kDeepstacks{
    {{"concat", Deepstack::kConcat}, {"split", Deepstack::kSplit}, {"main", Deepstack::kMain}}};
constexpr Names<TensorNaming, 2> kNamings{
    {{"items", TensorNaming::kItems}, {"hf", TensorNaming::kHf}}};
constexpr Names<bool OutputOptions::*, 4> kIncludes{{{"grid", &OutputOptions::grid},
                                                     {"timestamps", &OutputOptions::timestamps},
                                                     {"part", &OutputOptions::part},
                                                     {"timings", &OutputOptions::timings}}};

template <typename Value, std::size_t kCount>
[[noreturn]] void refuse_name(const Names<Value, kCount>& names, std::string_view got,
                              const std::string& path) {
  std::string message = "expected one of";
  const char* comma = " ";
  for (const auto& [name, value] : names) {
    message += std::exchange(comma, ", ");
    message += name;
  }
  refuse(path, message + ", got \"" + shortened(got, 60) + "\"");
}

template <typename Value, std::size_t kCount>
Value named(const Names<Value, kCount>& names, std::string_view name, const std::string& path) {
  for (const auto& [known, value] : names) {
    if (known == name) return value;
  }
  refuse_name(names, name, path);
}

/// Leaves `value` as it is without the member.
template <typename Value, std::size_t kCount>
void read_choice(Fields& fields, std::string_view member, const Names<Value, kCount>& names,
                 Value& value) {
  if (const std::optional<std::string_view> text = fields.text(member))
    value = named(names, *text, fields.path(member));
}

void read_include(Fields& output, OutputOptions& options) {
  const std::optional<JsonView> include = output.find("include");
  if (!include) return;
  const std::string path = output.path("include");
  if (!include->is_array()) refuse(path, "expected an array of names");
  options.grid = false;
  for (std::size_t i = 0; i < include->num_elements(); ++i) {
    const JsonView name = include->element(i);
    options.*named(kIncludes, name.is_string() ? name.as_text() : name.summary(), path) = true;
  }
}

}  // namespace

Pooling pooling_of(Fields& fields, Pooling otherwise) {
  Pooling pooling = otherwise;
  read_choice(fields, "pooling", kPoolings, pooling);
  return pooling;
}

Deepstack deepstack_of(Fields& fields, Pooling pooling) {
  Deepstack deepstack = pooling == Pooling::kNone ? Deepstack::kConcat : Deepstack::kMain;
  read_choice(fields, "deepstack", kDeepstacks, deepstack);
  return deepstack;
}

Deepstack vector_deepstack_of(Fields& fields, Pooling pooling) {
  const Deepstack deepstack = deepstack_of(fields, pooling);
  if (deepstack != Deepstack::kSplit) return deepstack;
  const std::string path = fields.path("deepstack");
  refuse(path, "expected concat or main, got \"split\"");
}

void check_pooling(const RowOptions& rows, const Service& service) {
  const std::string& file = service.model().report.embedding_file;
  if (rows.pooling == Pooling::kNone || file.empty()) return;
  throw ApiError(400, "vectors_need_language_model",
                 "the checkpoint is an embedding model (" + file +
                     "), whose vectors its language model makes; expected a route for rows of its "
                     "vision tower: /v1/encode, or /pooling with the task token_embed");
}

OutputOptions read_output(Fields& body, const std::string* accept) {
  OutputOptions options;
  if (accept != nullptr && accept->find("application/vnd.safetensors") != accept->npos)
    options.format = ReplyFormat::kSafetensors;
  const std::optional<JsonView> json = body.find("output");
  if (!json) return options;
  Fields output(*json, body.path("output"));
  read_choice(output, "format", kFormats, options.format);
  const std::string_view dtype = output.text("dtype").value_or("auto");
  options.dtype_is_auto = dtype == "auto";
  if (!options.dtype_is_auto) options.rows.type = element_type(dtype, output.path("dtype"));
  read_choice(output, "endianness", kOrders, options.rows.order);
  options.rows.pooling = pooling_of(output, options.rows.pooling);
  options.rows.deepstack = deepstack_of(output, options.rows.pooling);
  read_choice(output, "naming", kNamings, options.naming);
  options.rows.normalize = output.boolean("normalize").value_or(false);
  read_include(output, options);
  output.refuse_others();
  return options;
}

void choose_dtype(OutputOptions& options, RowDType checkpoint) {
  if (!options.dtype_is_auto) return;
  options.dtype_is_auto = false;
  const bool is_npy = options.format == ReplyFormat::kNpy && checkpoint == RowDType::kBFloat16;
  if (options.format != ReplyFormat::kJson && !is_npy) options.rows.type = element_type(checkpoint);
}

}  // namespace fovea::serve
