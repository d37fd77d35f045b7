#include "serve/http/key_set.h"

#include <sys/random.h>

#include <algorithm>

#include "fovea/error.h"
#include "serve/text/url.h"

namespace fovea::serve {

KeySet::KeySet(const std::vector<std::string>& keys) : secret_(sizeof(Sha256Digest), '\0') {
  if (getrandom(secret_.data(), secret_.size(), 0) != static_cast<ssize_t>(secret_.size())) {
    throw Error(ErrorCode::kIo, "no random bytes for the keys of clients");
  }
  for (const std::string& key : keys) {
    if (key.empty()) throw Error(ErrorCode::kInvalidArgument, "an API key is empty");
    digests_.push_back(digest(key));
  }
  std::ranges::sort(digests_);
}

bool KeySet::contains(std::string_view key) const {
  return std::ranges::binary_search(digests_, digest(key));
}

Sha256Digest KeySet::digest(std::string_view key) const {
  return sha256(std::string(secret_).append(key));
}

std::optional<std::string_view> bearer_key(std::string_view authorization) {
  constexpr std::string_view kBearer = "bearer ";
  if (!begins_with(authorization, kBearer)) return std::nullopt;
  authorization.remove_prefix(kBearer.size());
  return authorization.substr(std::min(authorization.find_first_not_of(' '), authorization.size()));
}

}  // namespace fovea::serve
