#include "serve/routes/routes.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "serve/routes/fovea/encode_request.h"
#include "serve/routes/output_options.h"
#include "serve/routes/processing_options.h"
#include "serve/routes/reply_schemas.h"
#include "serve/rows/reply_formats.h"
#include "serve/rows/vector_reply.h"

namespace fovea::serve {
namespace {

/// Rows, a vector, or text that holds them.
JsonObject rows_schema(SchemaSet& named) {
  using schema::list, schema::number;
  return schema::either<list<list<number>>, list<number>, schema::text>(named);
}

constexpr std::array<ReplyMember, 23> kEncodedItemMembers{
    {{"index", schema::integer, "Place in the request"},
     {"id", schema::text, "As the request has it", false},
     {"uuid", schema::text, "As the request has it", false},
     {"object", schema::text, "encoding"},
     {"modality", schema::text, "image or video"},
     {"key", schema::text, "Under which the encoder cache knows the rows", false},
     {"cache", schema::text, "hit, join, miss or bypass", false},
     {"graph", schema::text, "hit, partial or miss", false},
     {"units_reused", schema::integer, "Parts that were there already", false},
     {"num_embeds", schema::integer, "Rows before pooling"},
     {"width", schema::integer, "Of a row of the engine"},
     {"hidden", schema::integer, "Of the main embedding"},
     {"deepstack_levels", schema::integer, "Beside it"},
     {"dtype", schema::text, "Of the elements"},
     {"shape", schema::list<schema::integer>, "Of the tensor"},
     {"grid_thw", schema::list<schema::integer>, "Patches in time, height and width", false},
     {"retained", schema::list<schema::integer>, "Rows that are left of a pruned video", false},
     {"timestamps", schema::list<schema::number>, "Seconds of the frames", false},
     {"timings_ms", schema::map<schema::number>, "Milliseconds of each stage", false},
     {"data", rows_schema, "Numbers, or base64 of elements or of an archive of torch"},
     {"deepstack", schema::list<rows_schema>, "Levels, with deepstack split", false},
     {"grid_thw_torch", schema::text, "The grid as an archive of torch in base64", false},
     {"part", schema::object, "A content part for vLLM", false}}};
constexpr ReplyObject kEncodedItem{"EncodedItem", kEncodedItemMembers};
constexpr std::array<ReplyMember, 4> kEncodeUsageMembers{
    {{"prompt_tokens", schema::integer, "Rows of all items"},
     {"total_tokens", schema::integer, "The same"},
     {"images", schema::integer, "Items"},
     {"videos", schema::integer, "Items"}}};
constexpr ReplyObject kEncodeUsage{"EncodeUsage", kEncodeUsageMembers};
constexpr std::array<ReplyMember, 6> kEncodingsMembers{
    {{"id", schema::text, "Of the request"},
     {"object", schema::text, "encoding.list"},
     {"created", schema::integer, "Seconds since 1970"},
     {"model", schema::text, "Its name"},
     {"data", schema::list<schema::reply<kEncodedItem>>, "The items in order"},
     {"usage", schema::reply<kEncodeUsage>, "What was encoded"}}};
constexpr ReplyObject kEncodings{"Encodings", kEncodingsMembers};

RouteText encode_text() {
  std::vector<Content> takes{{.schema = encode_schema},
                             {.schema = encode_form_schema, .type = "multipart/form-data"}};
  for (const std::string_view type :
       {kBinaryType, std::string_view("image/*"), std::string_view("video/*")}) {
    takes.push_back({.schema = schema::bytes, .type = type});
  }
  return {.summary = "Rows of images and videos",
          .takes = std::move(takes),
          .gives = {{.schema = schema::reply<kEncodings>},
                    {.schema = schema::bytes, .type = kBinaryType}},
          .parameters = encode_parameters,
          .about = kWhereOptionsStand,
          .example =
              "-H 'Content-Type: image/jpeg' -H 'Accept: application/vnd.safetensors' "
              "--data-binary @photo.jpg -o rows.safetensors"};
}

/// The part of a request that its reply needs.
struct Asked {
  OutputOptions output;
  EncodeReplyHead head;
  std::vector<EncodedItem> items;  ///< still without embeddings
};

/// Numbers that a reply of JSON would hold, as far as headers show.
std::size_t json_values_ahead(const ModelReport& report, const RowOptions& rows,
                              std::span<const PlannedItem> items) {
  const std::int64_t columns = rows.deepstack == Deepstack::kMain ? report.hidden : report.width;
  std::int64_t values = 0;
  for (const PlannedItem& item : items) {
    const std::optional<std::int64_t> known = item.rows();
    if (known) values += (rows.pooling == Pooling::kNone ? *known : 1) * columns;
  }
  return static_cast<std::size_t>(values);
}

Asked asked_for(const Encoder& encoder, const Request& request, const EncodeRequest& parsed) {
  const Service& service = encoder.service;
  const ModelReport& report = service.model().report;
  Asked asked;
  asked.output = parsed.output;
  check_pooling(asked.output.rows, service);
  choose_dtype(asked.output, service.model().dtype);
  check_output(asked.output, parsed.items.size());
  asked.head.id = "enc-" + (parsed.request_id.empty() ? request.id : parsed.request_id);
  asked.head.model = service.options().served_name;
  asked.head.hidden = report.hidden;
  asked.head.deepstack_levels = report.deepstack_levels;
  asked.head.max_json_values = encoder.limits.max_json_values;
  for (const EncodeItem& item : parsed.items) {
    asked.items.push_back({.embedding = nullptr, .id = item.id, .uuid = item.uuid});
  }
  return asked;
}

Reply make_reply(Asked asked, JobReply reply) {
  asked.head.created = unix_seconds();
  asked.head.room = std::move(reply.room);
  for (std::size_t i = 0; i < asked.items.size(); ++i)
    asked.items[i].embedding = std::move(reply.items[i]);
  return encode_reply(asked.output, asked.head, asked.items);
}

EncodeCall read_call(const Encoder& encoder, const Request& request, const PathArguments&) {
  const Service& service = encoder.service;
  const CallLimits& limits = encoder.limits;
  EncodeRequest parsed =
      read_encode_request(request, {.max_items = limits.max_items, .media = limits.media});
  service.check_model_name(parsed.model);
  for (const EncodeItem& item : parsed.items) check_item_options(item.media, service);
  const auto asked = std::make_shared<const Asked>(asked_for(encoder, request, parsed));
  EncodeCall call;
  for (EncodeItem& item : parsed.items) call.media.push_back(std::move(item.media));
  call.json = std::move(parsed.json);
  call.dtype = engine_dtype(asked->output.rows);
  call.reply_factor = reply_factor(asked->output);
  call.use_cache = parsed.use_cache;
  if (parsed.timeout) call.deadline = request.arrival + *parsed.timeout;
  if (asked->output.format == ReplyFormat::kJson) {
    call.look = [&service, asked](std::span<const PlannedItem> items) {
      check_json_values(json_values_ahead(service.model().report, asked->output.rows, items),
                        asked->head.max_json_values, kInsteadOfText);
    };
  }
  call.make_reply = [asked](JobReply reply) { return make_reply(*asked, std::move(reply)); };
  return call;
}

}  // namespace

Route encode_route(const Encoder& encoder) {
  return work_route(encoder, "/v1/encode", encode_text(), read_call);
}

}  // namespace fovea::serve
