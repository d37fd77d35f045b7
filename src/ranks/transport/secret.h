#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "fovea/communicator.h"

namespace fovea::ranks {

/// Bytes that are used once, and those that prove a secret.
using Nonce = std::array<std::byte, 32>;
using Proof = std::array<std::byte, 32>;

/// What the ranks of a group know and others do not: the text of RankOptions::secret_file, or the
/// variable FOVEA_RANKS_SECRET, without a line break at its end. Empty without both.
/// @throws Error(kInvalidArgument) for less than 16 bytes, and as read_text_file().
[[nodiscard]] std::string secret_of(const RankOptions& options);

/// @throws Error(kIo).
[[nodiscard]] Nonce make_nonce();

/// Who proves that it knows the secret.
enum class Side : std::uint8_t { kRank, kHub };

/// What a proof is about: both nonces, so that no proof serves twice.
struct Claim {
  Side side = Side::kRank;
  std::int32_t rank = 0;
  std::int32_t size = 0;
  Nonce of_hub{};
  Nonce of_rank{};
};

/// What nobody can make without the secret: HMAC-SHA256 of the claim. Source: RFC 2104.
/// @param secret may be empty, and proves nothing then.
[[nodiscard]] Proof prove(const std::string& secret, const Claim& claim);

/// In a time that does not tell how much of them is the same.
[[nodiscard]] bool is_same(const Proof& one, const Proof& other) noexcept;

}  // namespace fovea::ranks
