#include "serve/http/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "fovea/error.h"
#include "fovea/text.h"
#include "serve/http/asio.h"

namespace fovea::serve {
namespace {

void check(const boost::system::error_code& error, const std::string& what) {
  if (error) throw Error(ErrorCode::kInvalidArgument, what + ": " + error.message());
}

std::string read_pem(const std::string& what, const std::string& path) try {
  constexpr std::size_t kMaxBytes = std::size_t{4} << 20;
  return path.empty() ? std::string() : read_text_file(path, kMaxBytes);
} catch (const Error& error) {
  throw Error(ErrorCode::kInvalidArgument, what + " " + error.what());
}

/// Trusts all certificates of a text in PEM, and names them to clients.
void trust(SSL_CTX* context, const std::string& text, const std::string& path) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bytes(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free);
  const auto next = [&] {
    return std::unique_ptr<X509, decltype(&X509_free)>(
        PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr), &X509_free);
  };
  int count = 0;
  for (auto certificate = next(); certificate; certificate = next(), ++count) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate.get());
    SSL_CTX_add_client_CA(context, certificate.get());
  }
  const unsigned long end = ERR_peek_last_error();
  ERR_clear_error();
  const bool is_whole = ERR_GET_REASON(end) == PEM_R_NO_START_LINE;
  if (count > 0 && is_whole) return;
  const char* reason = is_whole ? nullptr : ERR_reason_error_string(end);
  throw Error(ErrorCode::kInvalidArgument,
              "certificates in " + path + ": " + (reason == nullptr ? "there are none" : reason));
}

void set_client_check(TlsContext& context, const TlsFiles& files, const TlsTexts& texts) {
  if (files.client_ca.empty()) {
    if (!files.require_client_cert) return;
    throw Error(ErrorCode::kInvalidArgument,
                "certificates of clients are required, but nobody is named who signs them");
  }
  trust(context.native_handle(), texts.client_ca, files.client_ca);
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

TlsTexts read_tls(const TlsFiles& files) {
  return {.certificate = read_pem("certificate", files.certificate),
          .key = read_pem("key", files.key),
          .client_ca = read_pem("certificates in", files.client_ca)};
}

std::shared_ptr<TlsContext> make_tls_context(const TlsFiles& files, const TlsTexts& texts) {
  auto context = std::make_shared<TlsContext>(TlsContext::tls_server);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_options(context->native_handle(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // OpenSSL would ask for it on the terminal.
  context->set_password_callback(
      [](std::size_t, TlsContext::password_purpose) { return std::string(); });
  boost::system::error_code error;
  context->use_certificate_chain(asio::buffer(texts.certificate), error);
  check(error, "certificate " + files.certificate);
  context->use_private_key(asio::buffer(texts.key), TlsContext::pem, error);
  check(error, "key " + files.key);  // also if it is not that of the certificate
  set_client_check(*context, files, texts);
  return context;
}

}  // namespace fovea::serve
