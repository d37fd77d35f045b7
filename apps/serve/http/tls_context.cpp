#include "serve/http/tls_context.h"

#include <functional>
#include <string_view>

#include "fovea/error.h"

namespace fovea::serve {
namespace {

void check(const boost::system::error_code& error, const std::string& what) {
  if (error) throw Error(ErrorCode::kInvalidArgument, what + ": " + error.message());
}

void set_client_check(TlsContext& context, const TlsFiles& files) {
  if (files.client_ca.empty()) {
    if (!files.require_client_cert) return;
    throw Error(ErrorCode::kInvalidArgument,
                "certificates of clients are required, but nobody is named who signs them");
  }
  boost::system::error_code error;
  context.load_verify_file(files.client_ca, error);
  check(error, "certificates in " + files.client_ca);
  SSL_CTX_set_client_CA_list(context.native_handle(),
                             SSL_load_client_CA_file(files.client_ca.c_str()));
  // Tickets of clients with certificates are only taken with a context of their own.
  constexpr std::string_view kSessions = "fovea";
  SSL_CTX_set_session_id_context(context.native_handle(),
                                 reinterpret_cast<const unsigned char*>(kSessions.data()),
                                 static_cast<unsigned int>(kSessions.size()));
  context.set_verify_mode(asio::ssl::verify_peer |
                          (files.require_client_cert ? asio::ssl::verify_fail_if_no_peer_cert
                                                     : asio::ssl::verify_none));
}

}  // namespace

std::shared_ptr<TlsContext> make_tls_context(const TlsFiles& files) {
  auto context = std::make_shared<TlsContext>(TlsContext::tls_server);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_options(context->native_handle(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // OpenSSL would ask for it on the terminal.
  context->set_password_callback(
      [](std::size_t, TlsContext::password_purpose) { return std::string(); });
  boost::system::error_code error;
  context->use_certificate_chain_file(files.certificate, error);
  check(error, "certificate " + files.certificate);
  context->use_private_key_file(files.key, TlsContext::pem, error);
  check(error, "key " + files.key);  // also if it is not that of the certificate
  set_client_check(*context, files);
  return context;
}

}  // namespace fovea::serve
