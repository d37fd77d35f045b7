// The secret of a group, which is proved and never sent.
#include "ranks/transport/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <cstdlib>
#include <span>
#include <vector>

#include "core/check.h"
#include "fovea/text.h"

namespace fovea::ranks {

namespace {

constexpr const char* kVariable = "FOVEA_RANKS_SECRET";
constexpr std::size_t kMaxFileBytes = 4096;
constexpr std::size_t kMinBytes = 16;

unsigned char* bytes_at(std::array<std::byte, 32>& bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

/// The input in bytes, all of a fixed size.
std::vector<unsigned char> to_bytes(const ProofInput& input) {
  std::vector<unsigned char> bytes;
  const auto append = [&](std::span<const std::byte> part) {
    for (const std::byte byte : part) bytes.push_back(static_cast<unsigned char>(byte));
  };
  append(std::as_bytes(std::span(&input.prover, 1)));
  append(std::as_bytes(std::span(&input.rank, 1)));
  append(std::as_bytes(std::span(&input.size, 1)));
  append(input.hub_nonce);
  append(input.rank_nonce);
  return bytes;
}

}  // namespace

std::string read_secret(const RankOptions& options) {
  const char* const variable = secure_getenv(kVariable);
  const bool in_file = !options.secret_file.empty();
  if (!in_file && variable == nullptr) return "";
  std::string secret = in_file ? read_text_file(options.secret_file, kMaxFileBytes) : variable;
  while (secret.ends_with('\n') || secret.ends_with('\r')) secret.pop_back();
  FOVEA_CHECK(secret.size() >= kMinBytes, kInvalidArgument,
              in_file ? options.secret_file : kVariable, ": expected a secret of at least ",
              kMinBytes, " bytes, got ", secret.size());
  return secret;
}

Nonce make_nonce() {
  Nonce nonce{};
  FOVEA_CHECK(RAND_bytes(bytes_at(nonce), static_cast<int>(nonce.size())) == 1, kIo,
              "the system gives no random bytes");
  return nonce;
}

Proof prove(const std::string& secret, const ProofInput& input) {
  const std::vector<unsigned char> bytes = to_bytes(input);
  Proof proof{};
  unsigned size = 0;
  const unsigned char* const done =
      HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), bytes.data(), bytes.size(),
           bytes_at(proof), &size);
  FOVEA_CHECK(done != nullptr && size == proof.size(), kUnsupported,
              "this build of OpenSSL computes no HMAC-SHA256");
  return proof;
}

bool is_equal(const Proof& one, const Proof& other) noexcept {
  return CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace fovea::ranks
