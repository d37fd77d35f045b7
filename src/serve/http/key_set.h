#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/sha256.h"

namespace fovea::serve {

/// Keys that clients may give. Any client makes a thread that moves bytes look one up: a
/// look-up takes time logarithmic in their number, which a file may have a hundred thousand of. How
/// long it takes reveals nothing of a key, because digests are compared that clients cannot make.
class KeySet {
 public:
  KeySet() = default;
  /// @throws Error(kInvalidArgument) for an empty key, Error(kIo) without random bytes.
  explicit KeySet(const std::vector<std::string>& keys);

  [[nodiscard]] bool empty() const noexcept { return digests_.empty(); }
  [[nodiscard]] bool contains(std::string_view key) const;

 private:
  [[nodiscard]] Sha256Digest digest(std::string_view key) const;

  std::string secret_;                 ///< in front of every key
  std::vector<Sha256Digest> digests_;  ///< ascending
};

/// The key of an Authorization "Bearer <key>", however its scheme is written; absent: it is another
/// one. Source: RFC 9110, 11.1.
[[nodiscard]] std::optional<std::string_view> bearer_key(std::string_view authorization);

}  // namespace fovea::serve
