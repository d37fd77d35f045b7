#pragma once

#include <vector>

#include "serve/http/router.h"
#include "serve/routes/encode_call.h"
#include "serve/upstream/forwarder.h"

namespace fovea::serve {

/// POST /v1/chat/completions of a proxy: encodes the images and videos of the conversation, puts
/// content parts with their rows in their places, named by their content keys, and forwards the
/// request. Without media it is forwarded as it came. Conversations are read as those of
/// chat_route() are; rows have the dtype of the checkpoint.
/// Source: docs/proxy.md. @param forwarder outlives the route.
[[nodiscard]] Route llm_chat_route(const Encoder& encoder, Forwarder& forwarder);

/// What an OpenAI client asks for beside it, forwarded as it comes: POST /v1/completions, GET
/// /v1/models and /v1/models/{id}. @param forwarder outlives the routes.
[[nodiscard]] std::vector<Route> llm_routes(Forwarder& forwarder);

/// The path of a request as a language model gets it, with its query.
[[nodiscard]] std::string target_of(const RequestHead& head, const std::string& path);

}  // namespace fovea::serve
