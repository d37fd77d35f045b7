#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"

namespace fovea::serve {

/// Hashes that vLLM knows as --mm-hasher-algorithm.
enum class DigestKind : std::uint8_t { kBlake3, kSha256, kSha512 };

/// The hash of a name: "blake3", "sha256" or "sha512". @throws Error(kInvalidArgument) for others.
[[nodiscard]] DigestKind digest_kind(std::string_view name);

/// The values by which an item of a request is identified.
struct DigestInput {
  std::string_view model_id;  ///< the consumer's --model, literally
  std::string_view modality;  ///< "image" or "video"
  std::string_view uuid;
  std::optional<JsonView> media_io_kwargs;      ///< of the modality; absent or empty: none
  std::optional<JsonView> mm_processor_kwargs;  ///< absent or empty: none
};

/// The identifier, in hexadecimal digits, under which vLLM 0.31 to 0.33 looks for an item whose
/// request has options for its processing. Members count in the order in which the request gives
/// them. Source: vLLM 0.33, vllm/multimodal/hasher.py, `MultiModalHasher.hash_kwargs`.
/// @throws ApiError(400, "invalid_value") for a number beyond 64 bits, which vLLM cannot hash
/// either.
[[nodiscard]] std::string vllm_digest(DigestKind kind, const DigestInput& input);

/// The hash of bytes, in hexadecimal digits.
[[nodiscard]] std::string hex_digest(DigestKind kind, std::string_view bytes);

}  // namespace fovea::serve
