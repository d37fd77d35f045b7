#include "serve/http/reply_writer.h"

#include <algorithm>
#include <array>

#include "serve/http/reply_head.h"

namespace fovea::serve {
namespace {

constexpr std::size_t kGather = 16;  ///< parts per write

/// Parts on their way out.
class Outgoing {
 public:
  Outgoing(std::string head, std::vector<BodyPart> body) : parts_(std::move(body)) {
    parts_.insert(parts_.begin(), body_part(std::move(head)));
    skip_empty();
  }

  [[nodiscard]] bool is_done() const noexcept { return next_ == parts_.size(); }

  /// The next bytes to be sent, as many as `buffers` can name.
  [[nodiscard]] std::span<const asio::const_buffer> fill(
      std::array<asio::const_buffer, kGather>& buffers) const {
    const std::size_t count = std::min(kGather, parts_.size() - next_);
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<const std::byte> bytes = parts_[next_ + i].bytes;
      buffers.at(i) = asio::const_buffer(bytes.data(), bytes.size());
    }
    return std::span(buffers).first(count);
  }

  /// They have been sent, that many.
  void consume(std::size_t sent) {
    while (sent > 0) {
      std::span<const std::byte>& bytes = parts_[next_].bytes;
      const std::size_t here = std::min(sent, bytes.size());
      bytes = bytes.subspan(here);
      sent -= here;
      skip_empty();
    }
  }

 private:
  void skip_empty() {
    for (; !is_done() && parts_[next_].bytes.empty(); ++next_) parts_[next_].owner.reset();
  }

  std::vector<BodyPart> parts_;
  std::size_t next_ = 0;
};

}  // namespace

Awaitable<void> write_reply(Stream& stream, ReplyPace pace, std::string head, Turn& turn) {
  const bool with_body = turn.head.method != "HEAD" && has_body(turn.status);
  const std::size_t head_size = head.size();
  std::vector<BodyPart> body = std::move(turn.reply->body);
  if (!with_body) body.clear();
  Outgoing outgoing(std::move(head), std::move(body));
  Clock::time_point idle_until = Clock::now() + pace.idle_timeout;
  std::array<asio::const_buffer, kGather> buffers;
  for (std::size_t sent = 0; !outgoing.is_done();) {
    stream.set_deadline(std::min(idle_until, pace.floor.next_check()));
    const IoResult written = co_await stream.write_some(outgoing.fill(buffers));
    const Clock::time_point now = Clock::now();
    if (written.error && !written.has_expired) throw ClientLeft();
    pace.floor.add(written.bytes, now);
    if (written.bytes > 0) idle_until = now + pace.idle_timeout;
    outgoing.consume(written.bytes);
    sent += written.bytes;
    turn.bytes_out = sent - std::min(sent, head_size);
    if (!outgoing.is_done() && (now >= idle_until || pace.floor.is_broken(now))) {
      throw ApiError(408, "slow_reader", "the reply is taken too slowly");
    }
  }
}

}  // namespace fovea::serve
