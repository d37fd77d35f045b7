#include "serve/http/reply_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

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

std::string_view reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    case 507: return "Insufficient Storage";
    default: return "Unknown";  // other statuses are as good without words
  }
}

void append_header(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ");
  for (const char character : value) {
    const auto code = static_cast<std::uint8_t>(character);
    head += code < 0x20 || code == 0x7f ? ' ' : character;
  }
  head += "\r\n";
}

/// Bytes of the body, where they are known and there is one.
std::optional<std::uint64_t> length_of(const Reply& reply) {
  if (!has_body(reply.status)) return std::nullopt;
  if (reply.stream) return reply.stream_length;
  return reply.size();
}

std::string two_digits(int number) {
  return {static_cast<char>('0' + number / 10 % 10), static_cast<char>('0' + number % 10)};
}

ApiError slow_reader() { return {408, "slow_reader", "the reply is taken too slowly"}; }

}  // namespace

Awaitable<void> write_reply(Stream& stream, ReplyPace pace, std::string head, Transaction& now) {
  const bool with_body = now.head.method != "HEAD" && has_body(now.outcome.status);
  const std::size_t head_size = head.size();
  std::vector<BodyPart> body = std::move(now.reply->body);
  if (!with_body) body.clear();
  Outgoing outgoing(std::move(head), std::move(body));
  Clock::time_point idle_until = Clock::now() + pace.idle_timeout;
  std::array<asio::const_buffer, kGather> buffers;
  for (std::size_t sent = 0; !outgoing.is_done();) {
    stream.set_deadline(std::min(idle_until, pace.floor.next_check()));
    const IoResult written = co_await stream.write_some(outgoing.fill(buffers));
    const Clock::time_point time = Clock::now();
    if (written.error && !written.has_expired) throw ClientLeft();
    pace.floor.add(written.bytes, time);
    if (written.bytes > 0) idle_until = time + pace.idle_timeout;
    outgoing.consume(written.bytes);
    sent += written.bytes;
    now.outcome.bytes_out = sent - std::min(sent, head_size);
    if (!outgoing.is_done() && (time >= idle_until || pace.floor.is_broken(time))) {
      throw slow_reader();
    }
  }
}

Awaitable<void> write_piece(Stream& stream, std::chrono::milliseconds timeout, std::string piece) {
  stream.set_deadline(Clock::now() + timeout);
  for (std::string_view rest = piece; !rest.empty();) {
    const asio::const_buffer buffer(rest.data(), rest.size());
    const IoResult written = co_await stream.write_some({&buffer, 1});
    if (written.has_expired) throw slow_reader();
    if (written.error) throw ClientLeft();
    rest.remove_prefix(written.bytes);
  }
  stream.set_deadline(Clock::time_point::max());
}

std::string chunk_of(std::string_view bytes) {
  constexpr int kHexadecimal = 16;
  std::array<char, 16> size;
  char* const end =
      std::to_chars(size.data(), size.data() + size.size(), bytes.size(), kHexadecimal).ptr;
  std::string chunk(size.data(), end);
  return chunk.append("\r\n").append(bytes).append("\r\n");
}

std::string http_date(std::time_t time) {
  // strftime() would follow the locale of the process.
  constexpr std::array<std::string_view, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::string text(kDays.at(static_cast<std::size_t>(parts.tm_wday)));
  text += ", " + two_digits(parts.tm_mday) + " ";
  text += kMonths.at(static_cast<std::size_t>(parts.tm_mon));
  text += " " + std::to_string(parts.tm_year + 1900) + " " + two_digits(parts.tm_hour) + ":" +
          two_digits(parts.tm_min) + ":" + two_digits(parts.tm_sec) + " GMT";
  return text;
}

bool is_sent_in_chunks(const Reply& reply, const ReplyFrame& frame) {
  return has_body(reply.status) && reply.stream && !reply.stream_length && frame.takes_chunks;
}

std::string reply_head(const Reply& reply, const ReplyFrame& frame) {
  std::string head = "HTTP/1.1 " + std::to_string(reply.status) + " ";
  head.append(reason_of(reply.status)).append("\r\n");
  if (!frame.server.empty()) append_header(head, "Server", frame.server);
  append_header(head, "Date", http_date(frame.now));
  if (!frame.request_id.empty()) append_header(head, "X-Request-Id", frame.request_id);
  if (!reply.content_type.empty()) append_header(head, "Content-Type", reply.content_type);
  for (const Header& header : reply.headers) append_header(head, header.name, header.value);
  if (is_sent_in_chunks(reply, frame)) {
    append_header(head, "Transfer-Encoding", "chunked");
  } else if (const auto length = length_of(reply)) {
    append_header(head, "Content-Length", std::to_string(*length));
  }
  append_header(head, "Connection", frame.keep_alive ? "keep-alive" : "close");
  return head += "\r\n";
}

bool has_body(int status) { return status >= 200 && status != 204 && status != 304; }

}  // namespace fovea::serve
