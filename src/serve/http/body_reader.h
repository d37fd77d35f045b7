#pragma once

#include "serve/http/rate_floor.h"
#include "serve/http/stream.h"
#include "serve/http/transaction.h"

namespace fovea::serve {

/// Reads the body of a request that may come into memory, straight to where it stays. Memory, and
/// the room that the permit is asked for, grow with the bytes that have come and not with the
/// length that was announced: in steps that double.
class BodyReader {
 public:
  /// All must outlive this.
  BodyReader(Stream& stream, const HttpOptions& options, Transaction& now);

  /// Fills the body of the transaction, which is there and empty.
  /// @throws ApiError: 400 "invalid_request", 408 "slow_request", 413 "body_too_large",
  /// 504 "deadline_exceeded", or that of the permit; ClientLeft; std::bad_alloc.
  [[nodiscard]] Awaitable<void> read();

 private:
  [[nodiscard]] Awaitable<void> send_continue();
  [[nodiscard]] Awaitable<void> read_known();
  [[nodiscard]] Awaitable<void> read_chunked();
  /// Reads some bytes, at least one.
  [[nodiscard]] Awaitable<std::size_t> read_some(asio::mutable_buffer buffer);
  /// @throws ApiError if the client is too slow.
  void check_pace(Clock::time_point now);
  /// Appends bytes of a body whose length is not known.
  void keep(std::string_view bytes);
  /// Memory for `wanted` bytes of the body, of `most` at most.
  void make_room(std::size_t wanted, std::size_t most);

  Stream& stream_;
  Input& input_;
  const HttpOptions& options_;
  Transaction& now_;
  BodyBytes& body_;
  RateFloor floor_;
  Clock::time_point idle_until_;
};

/// The error for a body of more than the limit, which it names.
[[nodiscard]] ApiError body_too_large(const HttpOptions& options);

}  // namespace fovea::serve
