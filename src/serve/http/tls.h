#pragma once

#include <memory>
#include <string>

namespace boost::asio::ssl {
class context;
}

namespace fovea::serve {

using TlsContext = boost::asio::ssl::context;

/// Files of TLS, in PEM.
struct TlsFiles {
  std::string certificate;  ///< with its chain
  std::string key;
  std::string client_ca;  ///< who signs the certificates of clients; empty: none are asked for
  bool require_client_cert = false;  ///< without it a client may come without one
};

/// The contents of these files.
struct TlsTexts {
  std::string certificate;
  std::string key;
  std::string client_ca;
};

/// @throws Error(kInvalidArgument) naming a file that cannot be read, is no regular file or has
/// more than 4 MiB.
[[nodiscard]] TlsTexts read_tls(const TlsFiles& files);

/// The context that encrypts connections, by TLS 1.2 or later. @param texts of these files.
/// @throws Error(kInvalidArgument) with the file and OpenSSL's reason for texts that cannot be
/// used; keys with a password are refused.
[[nodiscard]] std::shared_ptr<TlsContext> make_tls_context(const TlsFiles& files,
                                                           const TlsTexts& texts);

}  // namespace fovea::serve
