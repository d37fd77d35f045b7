#pragma once

#include "serve/http/input.h"
#include "serve/http/rate_floor.h"
#include "serve/http/stream.h"
#include "serve/http/turn.h"

namespace fovea::serve {

/// Reads the body of a request that may come into memory, straight to where it stays. Memory grows
/// with the bytes that have come, not with the length that was announced.
class BodyReader {
 public:
  /// All must outlive this.
  BodyReader(Stream& stream, Input& input, const HttpOptions& options, Turn& turn);

  /// Fills turn.body, or answers with a refusal of the permit.
  /// @throws ApiError: 400 "invalid_request", 408 "slow_request", 413 "body_too_large",
  /// 504 "deadline_exceeded"; ClientLeft; std::bad_alloc.
  [[nodiscard]] Awaitable<void> read();

 private:
  [[nodiscard]] Awaitable<void> send_continue();
  [[nodiscard]] Awaitable<void> read_known();
  [[nodiscard]] Awaitable<void> read_chunked();
  /// Reads some bytes, at least one.
  [[nodiscard]] Awaitable<std::size_t> read_some(asio::mutable_buffer buffer);
  /// @throws ApiError if the client is too slow.
  void check_pace(Clock::time_point now);
  /// @return whether the bytes may be kept; if not, the request has its reply.
  [[nodiscard]] bool keep(std::string_view bytes);

  Stream& stream_;
  Input& input_;
  const HttpOptions& options_;
  Turn& turn_;
  std::vector<std::uint8_t>& body_;
  RateFloor floor_;
  Clock::time_point idle_until_;
};

/// The error for a body of more than the limit, which it names.
[[nodiscard]] ApiError body_too_large(const HttpOptions& options);

}  // namespace fovea::serve
