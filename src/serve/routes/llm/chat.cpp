#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "serve/api_error.h"
#include "serve/media/frame_lists.h"
#include "serve/routes/content_key.h"
#include "serve/routes/conversation.h"
#include "serve/routes/llm/rewritten_body.h"
#include "serve/routes/llm/routes.h"
#include "serve/routes/processing_options.h"
#include "serve/rows/item_json.h"
#include "serve/rows/reply_formats.h"
#include "serve/rows/row_output.h"
#include "serve/text/object_table.h"

namespace fovea::serve {
namespace {

/// The route with all that it refers to.
struct Chat {
  Encoder encoder;
  Forwarder& forwarder;
};

/// A request with media until it is forwarded.
struct ChatCall {
  SharedJson body;
  std::vector<std::string> params;  ///< of the parts with media
  std::vector<std::string> keys;    ///< of their items, where the engine has none
};

/// What of a body is read here; the rest is for the language model.
struct ProxyChatBody : BodyObject, ProcessingMembers {
  std::optional<JsonView> messages;
};
constexpr std::array<Member<ProxyChatBody>, 1> kMessagesMember{
    {{&ProxyChatBody::messages,
      {.name = "messages",
       .about = "The conversation, whose images and videos are encoded here",
       .schema = conversation_schema,
       .is_required = true}}}};
constexpr auto kProxyChatMembers = joined<ProxyChatBody>(kMessagesMember, kProcessingMembers);
constexpr ObjectTable<ProxyChatBody> kProxyChatBody{"ProxyChatBody", kProxyChatMembers};

constexpr const char* kPath = "/v1/chat/completions";

/// Options that have been honoured here. vLLM refuses them of strangers, and takes rows under other
/// names with them. Source: vLLM 0.32, --trust-request-mm-kwargs.
constexpr std::array<std::string_view, 2> kHonoured{"mm_processor_kwargs", "media_io_kwargs"};

BodyPart whole_body(const Request& request) {
  return {std::as_bytes(std::span(request.text())), request.body};
}

/// The content part of an item. Its rows are checked and not copied before they become text.
std::string part_of(const Service& service, const std::shared_ptr<const Embedding>& item,
                    const std::string& key) {
  if (item->retained) {
    throw ApiError(422, "unsupported_media",
                   item->name + ": a language model takes no pruned videos", item->name);
  }
  const RowOptions rows{.type = element_type(item->dtype)};
  const auto tensors = make_tensors(item, service.model().report.hidden, rows);
  std::string part;
  append_vllm_part({.embedding = item, .id = {}, .uuid = key}, tensors.front(), part);
  return part;
}

/// The request as the language model gets it.
ForwardedCall forwarded_call(const Service& service, const Request& request, const ChatCall& call,
                             const JobReply& reply) {
  ForwardedCall forwarded{.target = target_of(request, kPath)};
  std::vector<ReplacedPart> parts;
  for (std::size_t i = 0; i < reply.items.size(); ++i) {
    const std::shared_ptr<const Embedding>& item = reply.items[i];
    const std::string& key = item->key.empty() ? call.keys[i] : item->key;
    parts.push_back({.param = call.params[i], .json = part_of(service, item, key)});
    // What a language model keeps is kept by the beginning of a chat, and a chat grows at its end.
    if (i == 0) forwarded.key = key;
  }
  struct Body {
    std::string text;
    std::shared_ptr<const void> room;
  };
  const auto body = std::make_shared<const Body>(Body{
      .text = rewritten_body(call.body->root(), std::move(parts), kHonoured), .room = reply.room});
  forwarded.body.push_back({std::as_bytes(std::span(body->text)), body});
  return forwarded;
}

/// Frames for each second of a video that comes frame by frame, where the request says nothing: as
/// many as the language model would have taken it for. Source: vLLM 0.32, VideoMediaIO.load_base64.
constexpr double kFrameRate = 1;

/// Reads the media of a request; `call` learns where they stand.
EncodeCall read_media(const Chat& chat, const JsonView& messages, const ProcessingOptions& options,
                      ChatCall& call) {
  EncodeCall encode;
  MediaCounter counter(chat.encoder.limits.media);
  const ConversationRules rules{.max_items = chat.encoder.limits.max_items};
  for (MediaPart& part : parse_conversation(messages, "messages", rules)) {
    counter.count(part.reference);
    call.params.push_back(part.param);
    apply_options(options, chat.encoder.service, part.reference);
    if (!part.reference.fps && comes_in_frames(part.reference)) part.reference.fps = kFrameRate;
    encode.media.push_back(std::move(part.reference));
  }
  return encode;
}

void handle(const std::shared_ptr<const Chat>& chat, const std::shared_ptr<Exchange>& exchange) {
  chat->forwarder.check_up();
  const Request& request = exchange->request();
  Service& service = chat->encoder.service;
  const auto call = std::make_shared<ChatCall>();
  call->body = parse_json_object(request.text(), request.body);
  const ProxyChatBody body = read_object(kProxyChatBody, call->body->root());
  const ProcessingOptions options = read_processing_options(body, service);
  EncodeCall encode = read_media(*chat, *body.messages, options, *call);
  if (encode.media.empty()) {
    ForwardedCall forwarded{.target = target_of(request, kPath)};
    forwarded.body.push_back(whole_body(request));
    return chat->forwarder.forward(exchange, std::move(forwarded));
  }
  encode.dtype = service.model().dtype;
  encode.reply_factor = reply_factor({.format = ReplyFormat::kRaw, .part = true});
  if (!has_keys(service.options().engine)) {
    encode.look = [call, &service](std::span<const PlannedItem> items) {
      for (const PlannedItem& item : items) {
        call->keys.push_back(content_key(item.media(), service.model().fingerprint));
      }
    };
  }
  encode_and_hand_on(chat->encoder, exchange, std::move(encode),
                     [chat, call, exchange, &service](const JobReply& reply, Headers headers) {
                       ForwardedCall forwarded =
                           forwarded_call(service, exchange->request(), *call, reply);
                       forwarded.reply_headers = std::move(headers);
                       chat->forwarder.forward(exchange, std::move(forwarded));
                     });
}

}  // namespace

Route llm_chat_route(const Encoder& encoder, Forwarder& forwarder) {
  const auto chat = std::make_shared<const Chat>(Chat{encoder, forwarder});
  return {
      .method = "POST",
      .pattern = kPath,
      .kind = RouteKind::kWork,
      .handler = [chat](const std::shared_ptr<Exchange>& exchange,
                        const PathArguments&) { handle(chat, exchange); },
      .text = {.summary = "Encodes the media of a chat, and forwards it to a language model",
               .takes = {{.schema = schema::body<kProxyChatBody>}},
               .gives = {{.schema = schema::object},
                         {.schema = schema::text, .type = "text/event-stream"}},
               .example =
                   R"(--json '{"messages": [{"role": "user", "content": [{"type": "image_url", )"
                   R"("image_url": {"url": "https://example.org/photo.jpg"}}]}]}')"}};
}

}  // namespace fovea::serve
