#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace fovea::test {

template <typename Type, void (*Free)(Type*)>
struct FreeWith {
  void operator()(Type* object) const noexcept { Free(object); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY, EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, FreeWith<X509, X509_free>>;

/// A key, and a certificate that it signs for itself.
class Identity {
 public:
  explicit Identity(const std::string& name) : key_(EVP_EC_gen("P-256")), certificate_(X509_new()) {
    X509_set_version(certificate_.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate_.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate_.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate_.get()), 3600);
    X509_NAME* subject = X509_get_subject_name(certificate_.get());
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(certificate_.get(), subject);
    X509_set_pubkey(certificate_.get(), key_.get());
    if (X509_sign(certificate_.get(), key_.get(), EVP_sha256()) == 0) {
      throw std::runtime_error("X509_sign failed");
    }
  }

  void write_certificate(const std::string& path) const {
    const File file = open(path);
    if (PEM_write_X509(file.get(), certificate_.get()) != 1) throw std::runtime_error(path);
  }
  /// @param password none: not encrypted.
  void write_key(const std::string& path, const char* password = nullptr) const {
    const File file = open(path);
    const EVP_CIPHER* cipher = password == nullptr ? nullptr : EVP_aes_128_cbc();
    if (PEM_write_PrivateKey(file.get(), key_.get(), cipher, nullptr, 0, nullptr,
                             const_cast<char*>(password)) != 1) {
      throw std::runtime_error(path);
    }
  }
  [[nodiscard]] EVP_PKEY* key() const { return key_.get(); }
  [[nodiscard]] X509* certificate() const { return certificate_.get(); }

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { (void)std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;
  static File open(const std::string& path) {
    File file(std::fopen(path.c_str(), "wb"));
    if (!file) throw std::runtime_error(path);
    return file;
  }

  Key key_;
  Certificate certificate_;
};

/// A client of TLS on a connected socket, which it does not own.
class TlsClient {
 public:
  /// @param identity what to show if the server asks; may be null. @param version the highest.
  TlsClient(int socket, const Identity* identity = nullptr, int version = TLS1_3_VERSION)
      : context_(SSL_CTX_new(TLS_client_method())), ssl_(nullptr) {
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context_.get(), version);
    SSL_CTX_set_security_level(context_.get(), 0);  // so that old versions may try
    if (identity != nullptr) {
      SSL_CTX_use_certificate(context_.get(), identity->certificate());
      SSL_CTX_use_PrivateKey(context_.get(), identity->key());
    }
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), socket);
    is_connected_ = SSL_connect(ssl_.get()) == 1;
  }

  [[nodiscard]] bool is_connected() const { return is_connected_; }
  bool send(std::string_view bytes) {
    return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
  }
  /// All that comes before the server closes, or until it ends so.
  std::string receive_until(std::string_view end) {
    std::string text;
    char bytes[16'384];
    while (!text.ends_with(end)) {
      const int count = SSL_read(ssl_.get(), bytes, sizeof(bytes));
      if (count <= 0) break;
      text.append(bytes, static_cast<std::size_t>(count));
    }
    return text;
  }
  /// The reply to a request, "" if the server closes.
  std::string ask(std::string_view request, std::string_view end) {
    return is_connected_ && send(request) ? receive_until(end) : "";
  }
  /// Whether the server has said goodbye.
  [[nodiscard]] bool was_shut() const {
    return (SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0;
  }
  /// The name in the server's certificate.
  [[nodiscard]] std::string server_name() const {
    const Certificate certificate(SSL_get1_peer_certificate(ssl_.get()));
    char name[64] = "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, name,
                              sizeof(name));
    return name;
  }

 private:
  std::unique_ptr<SSL_CTX, FreeWith<SSL_CTX, SSL_CTX_free>> context_;
  std::unique_ptr<SSL, FreeWith<SSL, SSL_free>> ssl_;
  bool is_connected_ = false;
};

}  // namespace fovea::test
