#pragma once

#include <memory>

#include "serve/http/server.h"
#include "serve/http/stream.h"

namespace fovea::serve {

/// What encrypts connections: TLS 1.2 or later. @param texts of these files.
/// @throws Error(kInvalidArgument) with the file and OpenSSL's reason for texts that cannot be
/// used; keys with a password are refused.
[[nodiscard]] std::shared_ptr<TlsContext> make_tls_context(const TlsFiles& files,
                                                           const TlsTexts& texts);

}  // namespace fovea::serve
