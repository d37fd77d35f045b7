#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/lent_rows.h"
#include "serve/http/router.h"
#include "serve/routes/encode_call.h"
#include "serve/service/publisher.h"
#include "serve/service/row_store.h"
#include "serve/service/vllm_digest.h"

namespace fovea::serve {

/// Where rows are found once a request has been answered. Outlives all requests.
struct RowPlaces {
  RowStore& store;       ///< behind GET /v1/cache/{key}
  Publisher* publisher;  ///< a folder; null: none
};

struct ChatOptions {
  std::optional<RowDType> dtype;  ///< of the rows; absent: that of the checkpoint
  /// The consumer's --model, literally: rows of requests with options are then published under the
  /// identifier that vLLM computes, too. Empty: such requests are refused.
  std::string ec_model_id;
  DigestKind ec_hash = DigestKind::kBlake3;
};

/// POST /v1/chat/completions as vLLM's encode server answers it: encodes the media, makes their
/// rows available and says under which names; no text is made. One name for parts with different
/// content is refused before anything is encoded.
/// @throws (as replies) ApiError(400): "invalid_uuid", "options_change_the_key", "invalid_value"
/// for streams; ApiError(507, "ec_storage_full"), ApiError(500, "ec_publish_failed").
/// Source: vLLM, docs/features/disagg_encoder.md; docs/serving.md, "Encoder of vLLM".
[[nodiscard]] Route chat_route(const Encoder& encoder, const RowPlaces& places,
                               const ChatOptions& options);

/// GET and HEAD /v1/cache/{key}: a safetensors file with `ec_cache`, the rows that a chat request
/// has named; DELETE /v1/cache/{key} and POST /v1/cache/reset, which leave files of the publisher;
/// GET /v1/cache, the statistics. No key has the path of another GET, HEAD or DELETE.
/// @param publisher for its counters; may be null. All outlive the routes.
[[nodiscard]] std::vector<Route> cache_routes(Service& service, RowStore& store,
                                              const Publisher* publisher);

struct LendOptions {
  std::int64_t max_at_once = 0;  ///< requests that rows are lent to; 0: there is no such route
  std::chrono::milliseconds most_time{10'000};  ///< that rows are lent for
  std::size_t max_keys = 64;                    ///< of a request
};

/// What rows are lent with.
struct RowLending {
  RowStore& store;  ///< outlives the route
  /// As Engine::lend_rows(), where an empty key stands for nothing.
  std::function<LentRows(std::span<const std::string> cache_keys)> lend;
  /// As Engine::try_lend_rows(), likewise.
  std::function<std::optional<LentRows>(std::span<const std::string> cache_keys)> try_lend;
  /// Runs a task on a thread that computes.
  std::function<void(std::function<void()> task)> run_task;
};

/// POST /v1/cache/lend: where the rows of published keys lie in memory of GPUs, as one line of
/// JSON; they stay there until the client closes the connection, when it sends more over it, or
/// `most_time` has passed: the reply ends then. A thread that computes is needed only where rows
/// are not there yet.
/// @throws (as replies) ApiError(400): "too_many_items"; ApiError(429, "queue_full").
[[nodiscard]] Route lend_route(RowLending parts, const LendOptions& options);

/// "/v1/cache/<key>", the key percent-encoded. Source: RFC 3986, section 2.1.
[[nodiscard]] std::string cache_path(std::string_view key);

}  // namespace fovea::serve
