#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "fovea/communicator.h"

namespace fovea::ranks {

/// A nonce is random and used once; a proof shows that its sender knows the secret.
using Nonce = std::array<std::byte, 32>;
using Proof = std::array<std::byte, 32>;

/// The secret of a group: the text of RankOptions::secret_file, or the variable
/// FOVEA_RANKS_SECRET, without a line break at its end. Empty without both.
/// @throws Error(kInvalidArgument) for less than 16 bytes, Error(kNotFound) or Error(kIo) for a
/// file that cannot be read.
[[nodiscard]] std::string read_secret(const RankOptions& options);

/// A new nonce. @throws Error(kIo) if the system gives no random bytes.
[[nodiscard]] Nonce make_nonce();

/// The side that proves that it knows the secret.
enum class Prover : std::uint8_t { kRank, kHub };

/// What a proof is made of besides the secret: both nonces, so that no proof serves twice.
struct ProofInput {
  Prover prover = Prover::kRank;
  std::int32_t rank = 0;
  std::int32_t size = 0;
  Nonce hub_nonce{};
  Nonce rank_nonce{};
};

/// HMAC-SHA256 of the input, which only those can make who know the secret. Source: RFC 2104.
/// @param secret may be empty, and proves nothing then.
/// @throws Error(kUnsupported) if OpenSSL has no HMAC-SHA256.
[[nodiscard]] Proof prove(const std::string& secret, const ProofInput& input);

/// Compares in a time that does not depend on how much of them is equal.
[[nodiscard]] bool is_equal(const Proof& one, const Proof& other) noexcept;

}  // namespace fovea::ranks
