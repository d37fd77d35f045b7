#include "serve/routes/routes.h"

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
  Fields fields(body->root(), "");
  service.check_model_name(std::string(fields.text("model").value_or("")));
  auto request =
      std::make_shared<EmbedRequest>(parse_embed_request(body, encoder.limits.max_items));
  check_pooling(request->rows, service);
  const ProcessingOptions options = read_processing_options(fields, service);
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

Route embed_route(const Encoder& encoder) { return work_route(encoder, "/v2/embed", read_call); }

}  // namespace fovea::serve
