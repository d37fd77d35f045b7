#include "serve/routes/vllm/routes.h"

#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/api_error.h"
#include "serve/http/message.h"
#include "serve/routes/content_key.h"
#include "serve/routes/conversation.h"
#include "serve/routes/processing_options.h"
#include "serve/routes/vllm/part_metadata.h"
#include "serve/rows/item_json.h"
#include "serve/rows/row_output.h"
#include "serve/text/object_table.h"

namespace fovea::serve {
namespace {

constexpr const char* kWarning =
    "199 - \"vLLM encodes this family itself when pixels are forwarded\"";

struct EncoderChatBody : BodyObject, ProcessingMembers {
  std::optional<std::string_view> model;
  std::optional<bool> stream;
  std::optional<JsonView> messages;
};
constexpr std::array<Member<EncoderChatBody>, 3> kOwnChatMembers{
    {{&EncoderChatBody::model, {.name = "model", .about = "The model; without it the only one"}},
     {&EncoderChatBody::stream, {.name = "stream", .about = "Only false: there is no text"}},
     {&EncoderChatBody::messages,
      {.name = "messages",
       .about = "The conversation, whose images and videos are encoded",
       .schema = plain_conversation_schema,
       .is_required = true}}}};
constexpr auto kChatMembers = joined<EncoderChatBody>(kOwnChatMembers, kProcessingMembers);
constexpr ObjectTable<EncoderChatBody> kChatBody{"EncoderChatBody", kChatMembers};

constexpr std::array<ReplyMember, 5> kAboutRowsMembers{
    {{"path", schema::text, "Where they are fetched", false},
     {"rows", schema::integer, "Their number"},
     {"width", schema::integer, "Of each"},
     {"dtype", schema::text, "Of the elements"},
     {"identifier", schema::text, "Under which vLLM looks for them instead of the key", false}}};
constexpr ReplyObject kAboutRows{"TransferredRows", kAboutRowsMembers};
constexpr std::array<ReplyMember, 4> kTransferMembers{
    {{"modality", schema::text, "image or video"},
     {"item_indices", schema::list<schema::integer>,
      "Items of the conversation that have these rows"},
     {"metadata", schema::object, "By which vLLM counts placeholders"},
     {"fovea", schema::reply<kAboutRows>, "The rows"}}};
constexpr ReplyObject kTransfer{"EcTransfer", kTransferMembers};
constexpr std::array<ReplyMember, 2> kChatMessageMembers{
    {{"role", schema::text, "assistant"}, {"content", schema::text, "Empty: no text is made"}}};
constexpr ReplyObject kChatMessage{"EncoderChatMessage", kChatMessageMembers};
constexpr std::array<ReplyMember, 3> kChoiceMembers{
    {{"index", schema::integer, "0"},
     {"message", schema::reply<kChatMessage>, "Without text"},
     {"finish_reason", schema::text, "stop"}}};
constexpr ReplyObject kChoice{"EncoderChatChoice", kChoiceMembers};
constexpr std::array<ReplyMember, 3> kChatUsageMembers{
    {{"prompt_tokens", schema::integer, "Rows of all items"},
     {"completion_tokens", schema::integer, "0"},
     {"total_tokens", schema::integer, "Rows of all items"}}};
constexpr ReplyObject kChatUsage{"EncoderChatUsage", kChatUsageMembers};
constexpr std::array<ReplyMember, 7> kCompletionMembers{
    {{"id", schema::text, "Of the request"},
     {"object", schema::text, "chat.completion"},
     {"created", schema::integer, "Seconds since 1970"},
     {"model", schema::text, "Its name"},
     {"choices", schema::list<schema::reply<kChoice>>, "One"},
     {"usage", schema::reply<kChatUsage>, "What was encoded"},
     {"ec_transfer_params", schema::or_null<schema::map<schema::reply<kTransfer>>>,
      "Rows by their keys; null: there are no media"}}};
constexpr ReplyObject kCompletion{"EncoderChatCompletion", kCompletionMembers};

/// The route with all that it refers to.
struct Chat {
  Chat(const Encoder& with, RowPlaces to, ChatOptions given)
      : encoder(with), places(to), options(std::move(given)) {}

  Encoder encoder;
  RowPlaces places;
  ChatOptions options;
  std::atomic<bool> has_warned = false;
};

/// A part whose rows are to be found.
struct NamedPart {
  Modality modality = Modality::kImage;
  std::string key;     ///< empty: that of the rows
  std::string digest;  ///< under which vLLM looks for it instead of the key; empty: the key
  bool has_uuid = false;
  std::string param;  ///< where the uuid stands
};

std::string digest_of(const ChatOptions& chat, const ProcessingOptions& options,
                      const MediaPart& part) {
  const Modality modality = part.reference.modality;
  if (!options.concern(modality) || !part.uuid) return {};
  if (chat.ec_model_id.empty()) {
    throw ApiError(400, "options_change_the_key",
                   "with mm_processor_kwargs or media_io_kwargs vLLM looks for the rows under "
                   "another name than their uuid; without such options they are found, or with "
                   "--ec-model-id of this server",
                   options.mm_processor_kwargs ? "mm_processor_kwargs" : "media_io_kwargs");
  }
  return vllm_digest(chat.ec_hash, {.model_id = chat.ec_model_id,
                                    .modality = to_string(modality),
                                    .uuid = *part.uuid,
                                    .media_io_kwargs = options.io_kwargs(modality),
                                    .mm_processor_kwargs = options.mm_processor_kwargs});
}

NamedPart name_part(const ChatOptions& chat, const ProcessingOptions& options,
                    const MediaPart& part) {
  const std::string key(part.uuid.value_or(""));
  const std::string param = part.param + ".uuid";
  if (part.uuid) check_key(key, param);
  return {.modality = part.reference.modality,
          .key = key,
          .digest = digest_of(chat, options, part),
          .has_uuid = part.uuid.has_value(),
          .param = param};
}

/// Refuses a uuid of parts with different content: all of them would get the rows of the first.
/// @param items of the parts, in their order.
void check_uuids(const std::vector<NamedPart>& parts, std::span<const PlannedItem> items,
                 const std::string& fingerprint) {
  struct Named {
    std::size_t first;
    std::string content;  // of the first, once another has its name
  };
  std::map<std::string_view, Named> known;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].has_uuid) continue;
    const auto [place, is_new] = known.try_emplace(parts[i].key, Named{i, {}});
    if (is_new) continue;
    auto& [first, content] = place->second;
    if (content.empty()) content = content_key(items[first].media(), fingerprint);
    if (content_key(items[i].media(), fingerprint) == content) continue;
    refuse(parts[i].param,
           "expected a name for this content alone, got that of another image or video, at " +
               parts[first].param,
           "invalid_uuid");
  }
}

/// Makes the rows available under a name. @return whether they can be fetched.
bool keep(const RowPlaces& places, const std::string& name,
          const std::shared_ptr<const Embedding>& item) {
  const bool is_stored = places.store.put(name, item);
  if (places.publisher != nullptr) {
    places.publisher->publish(name, *item);
  } else if (!is_stored) {
    throw ApiError(507, "ec_storage_full",
                   "rows of " + std::to_string(item->data.size()) +
                       " bytes are larger than the whole store (--row-store-bytes)");
  }
  return is_stored;
}

/// The description of the rows of a key in the reply, but for `item_indices`, the items that have
/// it.
/// @param path where the rows are fetched; empty: nowhere.
JsonObject about_rows(const NamedPart& part, const std::string& path, const Embedding& item) {
  JsonObject ours;
  if (!path.empty()) ours.set("path", path);
  ours.set("rows", item.rows);
  ours.set("width", item.width);
  ours.set("dtype", to_string(element_type(item.dtype)));
  if (!part.digest.empty()) ours.set("identifier", part.digest);
  return ours;
}

/// The metadata of all items, or of none: vLLM takes no request in which some have them.
std::vector<JsonObject> metadata_of(MetadataRule rule, const std::vector<NamedPart>& parts,
                                    const JobReply& reply) {
  std::vector<JsonObject> all;
  bool is_complete = true;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    all.push_back(part_metadata(rule, *reply.items[i]));
    is_complete = is_complete && parts[i].has_uuid && !all.back().empty();
  }
  if (!is_complete) all.assign(parts.size(), JsonObject());
  return all;
}

using ItemsOfKey = std::pair<std::string, std::vector<std::size_t>>;

/// The keys in the order in which they come, each with its items.
std::vector<ItemsOfKey> items_by_key(const std::vector<NamedPart>& parts, const JobReply& reply) {
  std::vector<ItemsOfKey> all;
  std::map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string& key = parts[i].key.empty() ? reply.items[i]->key : parts[i].key;
    const auto [place, is_new] = places.try_emplace(key, all.size());
    if (is_new) all.push_back({key, {}});
    all[place->second].second.push_back(i);
  }
  return all;
}

/// Keeps the rows, and describes them by key; nothing if there are none.
std::optional<JsonObject> transfer_params(const Chat& chat, MetadataRule rule,
                                          const std::vector<NamedPart>& parts,
                                          const JobReply& reply) {
  if (parts.empty()) return std::nullopt;
  const std::vector<JsonObject> metadata = metadata_of(rule, parts, reply);
  JsonObject params;
  for (const auto& [key, indices] : items_by_key(parts, reply)) {
    const std::size_t first = indices.front();
    const std::shared_ptr<const Embedding>& item = reply.items[first];
    const std::string path = keep(chat.places, key, item) ? cache_path(key) : "";
    if (!parts[first].digest.empty()) keep(chat.places, parts[first].digest, item);
    params.set(key, JsonObject{{"modality", to_string(parts[first].modality)},
                               {"item_indices", indices},
                               {"metadata", metadata[first]},
                               {"fovea", about_rows(parts[first], path, *item)}});
  }
  return params;
}

JsonObject completion(const Service& service, const std::string& request_id, std::int64_t rows,
                      const std::optional<JsonObject>& params) {
  const JsonObject choice{{"index", 0},
                          {"message", JsonObject{{"role", "assistant"}, {"content", ""}}},
                          {"finish_reason", "stop"}};
  const JsonObject usage{{"prompt_tokens", rows}, {"completion_tokens", 0}, {"total_tokens", rows}};
  return {{"id", "chatcmpl-" + request_id},   {"object", "chat.completion"},
          {"created", unix_seconds()},        {"model", service.options().served_name},
          {"choices", JsonArray::of(choice)}, {"usage", usage},
          {"ec_transfer_params", params}};
}

Reply make_reply(Chat& chat, const std::vector<NamedPart>& parts, const std::string& request_id,
                 const JobReply& reply) {
  const Service& service = chat.encoder.service;
  const MetadataRule rule =
      parts.empty() ? MetadataRule::kGrid : metadata_rule(service.model().report.family);
  const std::optional<JsonObject> params = transfer_params(chat, rule, parts, reply);
  Reply made = json_reply(completion(service, request_id, count_rows(reply.items), params));
  if (rule != MetadataRule::kNone) return made;
  made.headers.push_back({"Warning", kWarning});
  if (!chat.has_warned.exchange(true)) {
    log_to(service.options().log, LogLevel::kWarning,
           "serve.no_metadata family=" + service.model().report.family +
               " reason=\"vLLM encodes this family itself when pixels are forwarded\"");
  }
  return made;
}

void handle(const std::shared_ptr<Chat>& chat, const std::shared_ptr<Exchange>& exchange) {
  const Request& http = exchange->request();
  const SharedJson body = parse_json_object(http.text(), http.body);
  const EncoderChatBody parsed = read_object(kChatBody, body->root());
  Service& service = chat->encoder.service;
  service.check_model_name(std::string(parsed.model.value_or("")));
  if (parsed.stream.value_or(false)) refuse("stream", "this server makes no text to be streamed");
  const ProcessingOptions options = read_processing_options(parsed, service);
  EncodeCall call;
  const auto parts = std::make_shared<std::vector<NamedPart>>();
  MediaCounter counter(chat->encoder.limits.media);
  const ConversationRules rules{.max_items = chat->encoder.limits.max_items,
                                .takes_options = false};  // vLLM knows those of requests alone
  for (MediaPart& part : parse_conversation(*parsed.messages, "messages", rules)) {
    counter.count(part.reference);
    parts->push_back(name_part(chat->options, options, part));
    apply_options(options, service, part.reference);
    call.media.push_back(std::move(part.reference));
  }
  const std::string& id = exchange->request().id;
  if (parts->empty()) return exchange->reply(make_reply(*chat, *parts, id, {}));
  call.dtype = chat->options.dtype.value_or(service.model().dtype);
  call.reply_factor = 0;
  call.look = [parts, &service](std::span<const PlannedItem> items) {
    const std::string& fingerprint = service.model().fingerprint;
    check_uuids(*parts, items, fingerprint);
    if (has_keys(service.options().engine)) return;
    for (std::size_t i = 0; i < items.size(); ++i) {
      NamedPart& part = (*parts)[i];
      if (!part.has_uuid) part.key = content_key(items[i].media(), fingerprint);
    }
  };
  call.make_reply = [chat, parts, id](const JobReply& reply) {
    return make_reply(*chat, *parts, id, reply);
  };
  encode_and_reply(chat->encoder, exchange, std::move(call));
}

}  // namespace

Route chat_route(const Encoder& encoder, const RowPlaces& places, const ChatOptions& options) {
  const auto chat = std::make_shared<Chat>(encoder, places, options);
  return {
      .method = "POST",
      .pattern = "/v1/chat/completions",
      .kind = RouteKind::kWork,
      .handler = [chat](const std::shared_ptr<Exchange>& exchange,
                        const PathArguments&) { handle(chat, exchange); },
      .text = {.summary = "Encodes and publishes the media of a conversation; makes no text",
               .takes = {{.schema = schema::body<kChatBody>}},
               .gives = {{.schema = schema::reply<kCompletion>}},
               .example =
                   R"(--json '{"messages": [{"role": "user", "content": [{"type": "image_url", )"
                   R"("image_url": {"url": "https://example.org/photo.jpg"}}]}]}')"}};
}

}  // namespace fovea::serve
