// SHA-256 by libcrypto, which uses what the processor has for it.
#include "rows/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <cstdint>

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

std::string Sha256::hex() {
  std::array<std::uint8_t, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  check_done(EVP_DigestFinal_ex(context_of(context_.get()), digest.data(), &size));
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : std::span(digest).first(size)) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace fovea
