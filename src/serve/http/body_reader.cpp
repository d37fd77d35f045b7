#include "serve/http/body_reader.h"

#include <algorithm>

#include "serve/http/chunk_decoder.h"

namespace fovea::serve {
namespace {

constexpr std::size_t kFirstRoom = std::size_t{64} << 10;  ///< for a body, unless it is smaller
constexpr std::size_t kPiece = std::size_t{256} << 10;     ///< at most, of one read
constexpr std::size_t kChunkedPiece = std::size_t{64} << 10;

}  // namespace

ApiError body_too_large(const HttpOptions& options) {
  return {413, "body_too_large",
          "the body is larger than " + std::to_string(options.max_body_bytes) +
              " bytes, the limit of the server (--max-body-bytes)"};
}

BodyReader::BodyReader(Stream& stream, const HttpOptions& options, Transaction& now)
    : stream_(stream),
      input_(stream.input()),
      options_(options),
      now_(now),
      body_(now.body->bytes),
      floor_(options.min_body_rate, options.rate_grace, options.rate_window, Clock::now()),
      idle_until_(Clock::now() + options.body_idle_timeout) {}

Awaitable<void> BodyReader::read() {
  if (now_.framing.expects_continue && now_.framing.has_body()) co_await send_continue();
  if (now_.framing.is_chunked) {
    co_await read_chunked();
  } else {
    co_await read_known();
  }
}

Awaitable<void> BodyReader::send_continue() {
  if (!input_.view().empty()) co_return;  // the client has not waited
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  std::string_view rest = kContinue;
  while (!rest.empty()) {
    stream_.set_deadline(idle_until_);
    const asio::const_buffer buffer(rest.data(), rest.size());
    const IoResult written = co_await stream_.write_some({&buffer, 1});
    if (written.error) throw ClientLeft();
    rest.remove_prefix(written.bytes);
  }
}

Awaitable<void> BodyReader::read_known() {
  const std::size_t length = now_.framing.content_length;
  const std::string_view early = input_.view().substr(0, length);
  make_room(early.size(), length);
  body_.append(early);
  input_.consume(early.size());
  now_.outcome.bytes_in = body_.size();
  while (body_.size() < length) {
    make_room(body_.size() + 1, length);
    const std::span<std::uint8_t> room = body_.room();
    const std::size_t piece = std::min(room.size(), kPiece);
    body_.commit(co_await read_some(asio::buffer(room.data(), piece)));
    now_.outcome.bytes_in = body_.size();
  }
  now_.received = Received::kAll;
}

Awaitable<void> BodyReader::read_chunked() {
  ChunkDecoder decoder;
  while (!decoder.is_done()) {
    if (input_.view().empty()) {
      const std::span<char> room = input_.prepare(kChunkedPiece);
      input_.commit(co_await read_some(asio::buffer(room.data(), room.size())));
    }
    const ChunkDecoder::Step step = decoder.next(input_.view());
    keep(step.data);
    input_.consume(step.consumed);
  }
  now_.received = Received::kAll;
}

void BodyReader::keep(std::string_view bytes) {
  if (bytes.empty()) return;
  now_.outcome.bytes_in += bytes.size();
  if (bytes.size() > options_.max_body_bytes - body_.size()) throw body_too_large(options_);
  make_room(body_.size() + bytes.size(), options_.max_body_bytes);
  body_.append(bytes);
}

void BodyReader::make_room(std::size_t wanted, std::size_t most) {
  if (wanted <= body_.capacity() && body_.capacity() > 0) return;
  const std::size_t step = std::max({wanted, 2 * body_.capacity(), kFirstRoom});
  const std::size_t room = std::min(step, most);
  if (now_.permit.grow) now_.permit.grow(room);
  body_.reserve(room);
}

Awaitable<std::size_t> BodyReader::read_some(asio::mutable_buffer buffer) {
  for (;;) {
    stream_.set_deadline(std::min({idle_until_, floor_.next_check(), now_.head.deadline}));
    const IoResult got = co_await stream_.read_some(buffer);
    const Clock::time_point now = Clock::now();
    floor_.add(got.bytes, now);
    if (got.bytes == 0 && !got.has_expired) throw ClientLeft();
    if (got.bytes > 0) idle_until_ = now + options_.body_idle_timeout;
    check_pace(now);
    if (got.bytes > 0) co_return got.bytes;
  }
}

void BodyReader::check_pace(Clock::time_point now) {
  if (now >= now_.head.deadline) {
    throw ApiError(504, "deadline_exceeded", "the time for the request has passed");
  }
  if (now >= idle_until_ || floor_.is_broken(now)) {
    throw ApiError(408, "slow_request", "the body comes too slowly (--min-body-rate)");
  }
}

}  // namespace fovea::serve
