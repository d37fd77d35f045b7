#include "serve/routes/routes.h"

#include <array>
#include <string>
#include <utility>

#include "serve/routes/openai/embedding_request.h"
#include "serve/routes/output_options.h"
#include "serve/routes/reply_schemas.h"
#include "serve/rows/item_json.h"
#include "serve/text/json.h"

namespace fovea::serve {
namespace {

JsonObject vector_schema(SchemaSet& named) {
  return schema::either<schema::list<schema::number>, schema::text>(named);
}

JsonObject rows_or_text_schema(SchemaSet& named) {
  using schema::list, schema::number;
  return schema::either<list<list<number>>, list<number>, schema::text>(named);
}

constexpr std::array<ReplyMember, 3> kEmbeddingEntryMembers{
    {{"index", schema::integer, "Place in the request"},
     {"object", schema::text, "embedding or pooling"},
     {"embedding", vector_schema, "Numbers, or base64 of elements"}}};
constexpr ReplyObject kEmbeddingEntry{"Embedding", kEmbeddingEntryMembers};
constexpr std::array<ReplyMember, 6> kEmbeddingListMembers{
    {{"id", schema::text, "Of the request"},
     {"object", schema::text, "list"},
     {"created", schema::integer, "Seconds since 1970"},
     {"model", schema::text, "Its name"},
     {"data", schema::list<schema::reply<kEmbeddingEntry>>, "In order"},
     {"usage", schema::reply<kUsage>, "Rows before pooling"}}};
constexpr ReplyObject kEmbeddingList{"EmbeddingList", kEmbeddingListMembers};
constexpr std::array<ReplyMember, 3> kPooledMembers{
    {{"index", schema::integer, "Place in the request"},
     {"object", schema::text, "embedding or pooling"},
     {"data", rows_or_text_schema, "Numbers, or base64 of elements"}}};
constexpr ReplyObject kPooled{"PooledItem", kPooledMembers};
constexpr std::array<ReplyMember, 6> kPooledListMembers{
    {{"id", schema::text, "Of the request"},
     {"object", schema::text, "list"},
     {"created", schema::integer, "Seconds since 1970"},
     {"model", schema::text, "Its name"},
     {"data", schema::list<schema::reply<kPooled>>, "In order"},
     {"usage", schema::reply<kUsage>, "Rows before pooling"}}};
constexpr ReplyObject kPooledList{"PooledItemList", kPooledListMembers};

RouteText text_of(EmbeddingRoute route) {
  const bool is_pooling = route == EmbeddingRoute::kPooling;
  return {
      .summary = is_pooling ? "Rows, as vLLM's token-level pooling has them"
                            : "A vector for each input, as OpenAI and vLLM have it",
      .takes = {{.schema = is_pooling ? pooling_schema : embedding_schema}},
      .gives = {{.schema = is_pooling ? schema::reply<kPooledList> : schema::reply<kEmbeddingList>},
                {.schema = schema::bytes, .type = kBinaryType}},
      .example = R"(--json '{"input": ["https://example.org/photo.jpg"]}')"};
}

/// Bytes of a reply per byte of the rows that the engine makes, beyond these.
double reply_factor(const EmbeddingRequest& request) {
  if (request.rows.pooling != Pooling::kNone) return 0;
  const auto row_bytes = static_cast<double>(size_of(element_type(engine_dtype(request.rows))));
  const auto bytes = static_cast<double>(size_of(request.form.type));
  switch (request.form.encoding) {
    case VectorEncoding::kFloat: return kJsonNumberBytes / row_bytes;
    case VectorEncoding::kBase64: return (1 + 4.0 / 3) * bytes / row_bytes;
    case VectorEncoding::kBytes:
    case VectorEncoding::kBytesOnly: break;
  }
  return bytes / row_bytes;
}

Reply make_reply(const Encoder& encoder, EmbeddingRoute route, const EmbeddingRequest& request,
                 const std::string& request_id, JobReply reply) {
  const Service& service = encoder.service;
  const bool is_pooling = route == EmbeddingRoute::kPooling;
  VectorReplyHead head;
  head.object = is_pooling ? "pooling" : "embedding";
  head.id = (is_pooling ? "pooling-" : "embd-") + request_id;
  head.created = unix_seconds();
  head.model = service.options().served_name;
  head.prompt_tokens = count_rows(reply.items);
  head.max_json_values = encoder.limits.max_json_values;
  head.room = std::move(reply.room);
  return vector_reply(request.form, head,
                      first_tensors(reply.items, service.model().report.hidden, request.rows));
}

EncodeCall read_call(const Encoder& encoder, EmbeddingRoute route, const Request& http) {
  const Service& service = encoder.service;
  const SharedJson body = parse_json_object(http.text(), http.body);
  auto request =
      std::make_shared<EmbeddingRequest>(parse_embedding_request(body, route, encoder.limits));
  service.check_model_name(request->model);
  check_pooling(request->rows, service);
  const ProcessingOptions options = read_processing_options(request->processing, service);
  EncodeCall call;
  call.media = std::move(request->media);
  call.json = std::move(request->json);
  for (MediaReference& reference : call.media) apply_options(options, service, reference);
  call.dtype = engine_dtype(request->rows);
  call.reply_factor = reply_factor(*request);
  call.make_reply = [encoder, route, request = std::move(request), id = http.id](JobReply reply) {
    return make_reply(encoder, route, *request, id, std::move(reply));
  };
  return call;
}

Route route_of(const Encoder& encoder, std::string path, EmbeddingRoute route) {
  return work_route(encoder, std::move(path), text_of(route),
                    [route](const Encoder& with, const Request& request, const PathArguments&) {
                      return read_call(with, route, request);
                    });
}

}  // namespace

std::vector<Route> embedding_routes(const Encoder& encoder) {
  return {route_of(encoder, "/v1/embeddings", EmbeddingRoute::kEmbeddings),
          route_of(encoder, "/embeddings", EmbeddingRoute::kEmbeddings),
          route_of(encoder, "/pooling", EmbeddingRoute::kPooling)};
}

}  // namespace fovea::serve
