#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serve/http/router.h"
#include "serve/service/publisher.h"
#include "serve/service/row_store.h"
#include "serve/service/service.h"

namespace fovea::serve {

/// GET and HEAD /v1/cache/{key}: a safetensors file with `ec_cache`, the rows that a chat request
/// has named; DELETE /v1/cache/{key} and POST /v1/cache/reset, which leave files of the publisher;
/// GET /v1/cache, the statistics. No key has the path of another GET, HEAD or DELETE.
/// @param publisher for its counters; may be null. All outlive the routes.
[[nodiscard]] std::vector<Route> cache_routes(Service& service, RowStore& store,
                                              const Publisher* publisher);

/// "/v1/cache/<key>", the key percent-encoded. Source: RFC 3986, section 2.1.
[[nodiscard]] std::string cache_path(std::string_view key);

}  // namespace fovea::serve
