// SHA-256 by libcrypto, which uses what the processor has for it.
#include "core/sha256.h"

#include <openssl/evp.h>

#include "core/check.h"

namespace fovea {

namespace {

EVP_MD_CTX* context_of(void* memory) { return static_cast<EVP_MD_CTX*>(memory); }

void check_done(int result) {
  FOVEA_CHECK(result == 1, kUnsupported, "this build of OpenSSL computes no SHA-256");
}

}  // namespace

void Sha256::Free::operator()(void* context) const noexcept {
  EVP_MD_CTX_free(context_of(context));
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  FOVEA_CHECK(context_ != nullptr, kOutOfMemory, "no memory for a SHA-256");
  check_done(EVP_DigestInit_ex(context_of(context_.get()), EVP_sha256(), nullptr));
}

void Sha256::add(std::span<const std::byte> bytes) {
  check_done(EVP_DigestUpdate(context_of(context_.get()), bytes.data(), bytes.size()));
}

Sha256Digest Sha256::digest() {
  Sha256Digest digest{};
  unsigned size = 0;
  auto* const bytes = reinterpret_cast<unsigned char*>(digest.data());
  check_done(EVP_DigestFinal_ex(context_of(context_.get()), bytes, &size));
  return digest;
}

std::string Sha256::hex() { return to_hex(digest()); }

Sha256Digest sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.digest();
}

std::string sha256_hex(std::string_view bytes) { return to_hex(sha256(bytes)); }

std::string to_hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

}  // namespace fovea
