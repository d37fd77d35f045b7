#pragma once

#include <memory>

#include "serve/http/server.h"
#include "serve/http/stream.h"

namespace fovea::serve {

/// What encrypts connections: TLS 1.2 or later. @throws Error(kInvalidArgument) with OpenSSL's
/// reason for files that cannot be read or used; keys with a password are refused.
[[nodiscard]] std::shared_ptr<TlsContext> make_tls_context(const TlsFiles& files);

}  // namespace fovea::serve
