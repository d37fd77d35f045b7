#pragma once

#include <string>

#include "serve/http/key_set.h"
#include "serve/http/message.h"

namespace fovea::serve {

/// Who the proxy is to a language model.
struct UpstreamKey {
  std::string api_key;  ///< its own; empty: none
  /// Without one: whether the keys of clients are passed on. Not if they are those of the proxy.
  bool passes_client_keys = true;
  KeySet admin_keys = {};  ///< of the proxy: never passed on
};

/// The headers of a client's request that a language model gets: all but those of a connection, of
/// the transport and of the proxy itself. X-Request-Id is that of `head`, Via says who passes it
/// on, and a body of which the client says nothing is JSON, as the proxy has read it. Source: RFC
/// 9110, 7.6.1 and 7.6.3.
[[nodiscard]] Headers passed_request_headers(const RequestHead& head, const UpstreamKey& key);

/// The headers of an answer that a client gets: all but those of a connection, and those that the
/// transport adds to every reply. Content-Type stays among them.
[[nodiscard]] Headers passed_answer_headers(const Headers& headers);

}  // namespace fovea::serve
