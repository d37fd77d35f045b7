#include "hub/content_digest.h"

#include <openssl/evp.h>

#include <array>
#include <new>

#include "core/check.h"
#include "core/sha256.h"

namespace fovea::hub {
namespace {

constexpr std::size_t kSha1Digits = 40;
constexpr std::size_t kSha256Digits = 64;

EVP_MD_CTX* evp(const auto& context) { return static_cast<EVP_MD_CTX*>(context.get()); }

}  // namespace

void ContentDigest::Free::operator()(void* context) const noexcept {
  EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context));
}

bool ContentDigest::is_digest(std::string_view etag) noexcept {
  return (etag.size() == kSha1Digits || etag.size() == kSha256Digits) &&
         etag.find_first_not_of("0123456789abcdef") == etag.npos;
}

ContentDigest::ContentDigest(std::string etag, std::uint64_t size)
    : etag_(std::move(etag)), size_(size) {
  if (!is_digest(etag_)) return;
  context_.reset(EVP_MD_CTX_new());
  if (!context_) throw std::bad_alloc();
  const bool is_git = etag_.size() == kSha1Digits;
  FOVEA_CHECK(EVP_DigestInit_ex(evp(context_), is_git ? EVP_sha1() : EVP_sha256(), nullptr) == 1,
              kUnsupported, "the crypto library has no ", is_git ? "SHA-1" : "SHA-256");
  if (!is_git) return;
  const std::string head = cat("blob ", size) + '\0';
  EVP_DigestUpdate(evp(context_), head.data(), head.size());
}

void ContentDigest::add(std::span<const std::byte> bytes) {
  bytes_ += bytes.size();
  if (context_) EVP_DigestUpdate(evp(context_), bytes.data(), bytes.size());
}

bool ContentDigest::matches() {
  if (bytes_ != size_) return false;
  if (!context_) return true;
  std::array<std::byte, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  EVP_DigestFinal_ex(evp(context_), reinterpret_cast<unsigned char*>(digest.data()), &length);
  return to_hex(std::span(digest).first(length)) == etag_;
}

}  // namespace fovea::hub
