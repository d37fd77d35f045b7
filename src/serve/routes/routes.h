#pragma once

#include <vector>

#include "serve/http/router.h"
#include "serve/routes/encode_call.h"

// The routes of protocols that need no more than an encoder, which outlives them. Those of vLLM,
// which keep rows, of language models and of administrators are in routes.h of their folders.

namespace fovea::serve {

/// POST /v1/encode: the rows of images and videos, in the format that the client asks for.
/// Source: docs/serving.md, "POST /v1/encode".
[[nodiscard]] Route encode_route(const Encoder& encoder);

/// POST /v1/plan: what /v1/encode would make of the same body, without encoding: sizes, grids, rows
/// and how the items are packed. An item may be a size, {"type": "image", "width": 640, "height":
/// 480}; of images no more than the header is read. Videos in containers have to be sizes, because
/// their frames are known once they are decoded: 422 "unsupported_media".
/// Source: docs/serving.md, "POST /v1/plan".
[[nodiscard]] Route plan_route(const Encoder& encoder);

/// POST /v1/embeddings and /embeddings, as OpenAI, vLLM and infinity have them, and POST /pooling,
/// as vLLM has it.
[[nodiscard]] std::vector<Route> embedding_routes(const Encoder& encoder);

/// GET /v1/models, /models and /v1/models/{id}, as OpenAI has them; an id may hold one '/'.
/// Answered while the model is being loaded, too. @param service outlives the routes.
[[nodiscard]] std::vector<Route> model_routes(const Service& service);

/// POST /v2/embed with `images`, a list of URLs, or `inputs`, a list of contents with one image or
/// video each: one vector each, the mean of its rows at L2 norm 1, as `float` or `base64`. Texts
/// and quantised types are refused. Source: Cohere, API reference, "Embed (V2)".
[[nodiscard]] Route embed_route(const Encoder& encoder);

/// The HTTP routes of the Open Inference Protocol, version 2, as KServe and Triton have them: GET
/// /v2, /v2/health/live, /v2/health/ready, /v2/models/{m} with /ready and /stats, POST
/// /v2/models/{m}/infer with the binary extension; models also as .../versions/1.
/// Source: kserve/open-inference-protocol, specification/protocol/inference_rest.md; Triton
/// Inference Server, docs/protocol/extension_statistics.md.
[[nodiscard]] std::vector<Route> kserve_routes(const Encoder& encoder);

}  // namespace fovea::serve
