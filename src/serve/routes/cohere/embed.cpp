#include "serve/routes/routes.h"

#include <array>
#include <string>
#include <utility>

#include "core/json_writer.h"
#include "serve/routes/cohere/embed_request.h"
#include "serve/routes/output_options.h"
#include "serve/routes/processing_options.h"
#include "serve/rows/item_json.h"
#include "serve/rows/row_output.h"
#include "serve/text/base64.h"
#include "serve/text/json.h"

namespace fovea::serve {
namespace {

constexpr std::array<ReplyMember, 2> kVectorsMembers{
    {{"float", schema::list<schema::list<schema::number>>, "Numbers", false},
     {"base64", schema::list<schema::text>, "Elements of float32", false}}};
constexpr ReplyObject kVectors{"CohereVectors", kVectorsMembers};
constexpr std::array<ReplyMember, 3> kBilledMembers{
    {{"input_tokens", schema::integer, "0: there is no text"},
     {"image_tokens", schema::integer, "Rows before pooling"},
     {"images", schema::integer, "Images and videos"}}};
constexpr ReplyObject kBilled{"CohereBilledUnits", kBilledMembers};
constexpr std::array<ReplyMember, 1> kApiVersionMembers{{{"version", schema::text, "2"}}};
constexpr ReplyObject kApiVersion{"CohereApiVersion", kApiVersionMembers};
constexpr std::array<ReplyMember, 2> kMetaMembers{
    {{"api_version", schema::reply<kApiVersion>, "Of the protocol"},
     {"billed_units", schema::reply<kBilled>, "What was encoded"}}};
constexpr ReplyObject kMeta{"CohereMeta", kMetaMembers};
constexpr std::array<ReplyMember, 4> kEmbeddingsMembers{
    {{"id", schema::text, "Of the request"},
     {"embeddings", schema::reply<kVectors>, "By their form"},
     {"meta", schema::reply<kMeta>, "About them"},
     {"response_type", schema::text, "embeddings_by_type"}}};
constexpr ReplyObject kEmbeddings{"CohereEmbeddings", kEmbeddingsMembers};

/// The vectors as one kind of embeddings has them: [[..], ..] or ["..", ..].
std::string vectors_text(const std::string& type, const std::vector<RowTensor>& vectors) {
  std::string text;
  for (const RowTensor& vector : vectors) {
    text += text.empty() ? "[" : ",";
    if (type == "float") {
      append_json_numbers(vector, text);
    } else {
      text += "\"" + to_base64(vector.bytes.bytes) + "\"";
    }
  }
  return text + "]";
}

Reply make_reply(const Service& service, const EmbedRequest& request, const std::string& request_id,
                 const JobReply& reply) {
  const std::vector<RowTensor> vectors =
      first_tensors(reply.items, service.model().report.hidden, request.rows);
  std::string text = "{\"id\":" + json_quote("embd-" + request_id) + ",\"embeddings\":{";
  for (const std::string& type : request.types) {
    if (type != *request.types.begin()) text += ",";
    text += "\"" + type + "\":" + vectors_text(type, vectors);
  }
  const JsonObject billed{{"input_tokens", 0},
                          {"image_tokens", count_rows(reply.items)},
                          {"images", reply.items.size()}};
  const JsonObject meta{{"api_version", JsonObject{{"version", "2"}}}, {"billed_units", billed}};
  text += "},\"meta\":" + to_json_text(meta) + ",\"response_type\":\"embeddings_by_type\"}";
  return text_reply(200, "application/json", std::move(text));
}

EncodeCall read_call(const Encoder& encoder, const Request& http, const PathArguments&) {
  const Service& service = encoder.service;
  const SharedJson body = parse_json_object(http.text(), http.body);
  auto request =
      std::make_shared<EmbedRequest>(parse_embed_request(body, encoder.limits.max_items));
  service.check_model_name(request->model);
  check_pooling(request->rows, service);
  const ProcessingOptions options = read_processing_options(request->processing, service);
  EncodeCall call;
  call.media = std::move(request->media);
  call.json = std::move(request->json);
  for (MediaReference& reference : call.media) {
    MediaCounter(encoder.limits.media).count(reference);  // each is a prompt of its own
    apply_options(options, service, reference);
  }
  call.dtype = engine_dtype(request->rows);
  call.reply_factor = 0;
  call.make_reply = [&service, request = std::move(request), id = http.id](const JobReply& reply) {
    return make_reply(service, *request, id, reply);
  };
  return call;
}

}  // namespace

Route embed_route(const Encoder& encoder) {
  return work_route(encoder, "/v2/embed",
                    {.summary = "A vector for each image or video, as Cohere has it",
                     .takes = {{.schema = embed_schema}},
                     .gives = {{.schema = schema::reply<kEmbeddings>}},
                     .example = R"(--json '{"images": ["https://example.org/photo.jpg"]}')"},
                    read_call);
}

}  // namespace fovea::serve
