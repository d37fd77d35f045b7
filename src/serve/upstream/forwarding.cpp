#include "serve/upstream/forwarding.h"

#include <algorithm>
#include <charconv>
#include <new>
#include <span>
#include <utility>

#include "serve/api_error.h"
#include "serve/text/url.h"

namespace fovea::serve {
namespace {

constexpr int kBadGateway = 502;
/// Most servers that get one request. All may be full at once, and a request to each of a thousand
/// would be what fills them.
constexpr int kMostGiven = 4;
constexpr int kUnavailable = 503;

UpstreamResult result_of(ClientEnd end, bool is_unavailable) {
  switch (end) {
    case ClientEnd::kComplete: return UpstreamResult::kAnswered;
    case ClientEnd::kNoConnection: return UpstreamResult::kNoConnection;
    case ClientEnd::kNoAnswer: return UpstreamResult::kNoAnswer;
    case ClientEnd::kBroken: return UpstreamResult::kBroken;
    case ClientEnd::kLate: return UpstreamResult::kLate;
    case ClientEnd::kUnwanted:
      if (is_unavailable) return UpstreamResult::kUnavailable;
      break;
    case ClientEnd::kStopped: break;
  }
  return UpstreamResult::kStopped;
}

ApiError client_left() { return {499, "client_closed_request", "the client has left"}; }

const char* reason_of(ClientEnd end) {
  switch (end) {
    case ClientEnd::kNoConnection: return "could not be reached";
    case ClientEnd::kNoAnswer: return "closed the connection without an answer";
    case ClientEnd::kUnwanted: return "is not available";
    default: return "broke its answer off";
  }
}

/// The attribute error.type of a span.
const char* error_type_of(ClientEnd end) {
  switch (end) {
    case ClientEnd::kComplete: break;
    case ClientEnd::kNoConnection: return "no_connection";
    case ClientEnd::kNoAnswer: return "no_answer";
    case ClientEnd::kBroken: return "broken_off";
    case ClientEnd::kLate: return "timeout";
    case ClientEnd::kUnwanted: return "unavailable";
    case ClientEnd::kStopped: return "cancelled";
  }
  return "";
}

/// Bytes of the body, if the head says so, and only once: libcurl takes the last of two.
std::optional<std::uint64_t> length_of(const Headers& headers) {
  const std::string* const text = find_header(headers, "Content-Length");
  const auto is_length = [](const Header& header) {
    return to_lower(header.name) == "content-length";
  };
  const bool is_one = std::ranges::count_if(headers, is_length) == 1;
  if (!is_one || find_header(headers, "Transfer-Encoding") != nullptr) return std::nullopt;
  std::uint64_t length = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), length);
  const bool is_number = error == std::errc() && end == text->data() + text->size();
  return is_number ? std::optional(length) : std::nullopt;
}

/// Whether an event may follow these bytes. Source: WHATWG, HTML, "Server-sent events".
bool ends_event(std::string_view tail) {
  return tail.ends_with("\n\n") || tail.ends_with("\r\n\r\n") || tail.ends_with("\r\r");
}

/// Whether the last event is the one that ends OpenAI's streams, after which clients read no more.
bool ends_with_done(std::string_view tail) {
  if (!ends_event(tail)) return false;
  tail.remove_suffix(tail.size() - 1 - tail.find_last_not_of("\r\n"));
  return tail.ends_with("data: [DONE]") || tail.ends_with("data:[DONE]");
}

/// What the two functions above look at.
constexpr std::size_t kTail = std::string_view("data: [DONE]\r\n\r\n").size();

bool is_event_stream(const Headers& headers) {
  const std::string* const type = find_header(headers, "Content-Type");
  return type != nullptr && begins_with(*type, "text/event-stream") &&
         find_header(headers, "Content-Encoding") == nullptr;
}

}  // namespace

Forwarding::Forwarding(std::shared_ptr<Exchange> exchange, ForwardedCall call,
                       const ForwardingParts& parts)
    : parts_(parts),
      exchange_(std::move(exchange)),
      call_(std::move(call)),
      gone_(exchange_->gone()),
      request_id_(exchange_->request().id),
      headers_(passed_request_headers(exchange_->request(), parts.options.key)),
      trace_(exchange_->request().trace) {}

void Forwarding::start() {
  on_gone_.emplace(gone_, Stop{this});
  const std::shared_ptr<Exchange> exchange = exchange_;
  try {
    attempt();
  } catch (...) {
    exchange->fail();
  }
}

void Forwarding::attempt() {
  if (gone_.stop_requested()) throw client_left();
  tried_.reserve(tried_.size() + 1);
  const ServerPool::Server server = parts_.pool.begin(call_.key, tried_);
  if (!server) throw llm_down();
  tried_.push_back(server);  // has room
  is_unavailable_ = false;
  ++times_given_;
  sent_ = Clock::now();
  status_ = 0;
  if (trace_) context_ = trace_->child();
  const HttpClient::Id id = parts_.client.make_id();
  id_ = id;
  const auto self = shared_from_this();
  try {
    parts_.client.start(
        id, request(),
        {.on_head = [self](const ClientHead& head) { return self->take_head(head); },
         .on_data = [self](std::string_view bytes) { return self->take_data(bytes); },
         .on_end = [self](ClientEnd end) { self->take_end(end); }});
  } catch (...) {
    parts_.pool.end(server, UpstreamResult::kStopped);
    throw;
  }
  // The client may have left before the request had its number. All but the token belongs to the
  // other thread by now.
  if (self->gone_.stop_requested()) self->parts_.client.stop(id);
}

ClientRequest Forwarding::request() const {
  Headers headers = headers_;
  if (trace_) set_trace_context(headers, context_);
  return {.method = call_.method,
          .url = tried_.back()->url() + call_.target,
          .address = tried_.back()->address(),
          .headers = std::move(headers),
          .body = call_.body,
          .connect_timeout = parts_.options.connect_timeout,
          .head_until = exchange_->request().deadline,
          .idle_timeout = parts_.options.idle_timeout};
}

bool Forwarding::may_ask_another() const noexcept {
  return times_given_ < kMostGiven && parts_.pool.has_other(tried_);
}

bool Forwarding::take_head(const ClientHead& head) {
  const std::chrono::duration<double> since = Clock::now() - sent_;
  ServerPool::observe_first_byte(*tried_.back(), since.count());
  status_ = head.status;
  const bool is_down = head.status == kBadGateway || head.status == kUnavailable;
  is_unavailable_ = is_down && may_ask_another();
  if (is_unavailable_) return false;
  stream_ = std::make_shared<ReplyStream>([&client = parts_.client, id = id_.load()](bool more) {
    if (more) {
      client.resume(id);
    } else {
      client.stop(id);
    }
  });
  Reply reply{.status = head.status};
  reply.headers = passed_answer_headers(head.headers);
  reply.headers.insert(reply.headers.end(), call_.reply_headers.begin(), call_.reply_headers.end());
  reply.stream = ReplyStream::reading_end(stream_);
  reply.stream_length = length_of(head.headers);
  // An event more would not be of the length that the client has been told.
  takes_event_ = !reply.stream_length && is_event_stream(head.headers);
  on_gone_.reset();  // from now on the stream tells
  std::exchange(exchange_, nullptr)->reply(std::move(reply));
  call_.body.clear();
  return true;
}

bool Forwarding::take_data(std::string_view bytes) {
  if (!stream_->put(bytes)) {
    if (stream_->is_closed()) throw client_left();
    return false;
  }
  tail_ += bytes.substr(bytes.size() - std::min(kTail, bytes.size()));
  if (tail_.size() > kTail) tail_.erase(0, tail_.size() - kTail);
  return true;
}

void Forwarding::take_end(ClientEnd end) noexcept {
  const bool is_cut = end == ClientEnd::kBroken || end == ClientEnd::kLate;
  if (is_cut && takes_event_ && ends_with_done(tail_)) end = ClientEnd::kComplete;
  const ServerPool::Server& server = tried_.back();
  parts_.pool.end(server, result_of(end, is_unavailable_));
  end_span(end);
  if (end == ClientEnd::kNoConnection) {
    parts_.pool.mark_down(*server, "no connection");
    --times_given_;
  }
  if (stream_) return end_stream(end);
  const std::shared_ptr<Exchange> exchange = exchange_;
  try {
    go_on(end);
  } catch (...) {
    exchange->fail();
  }
}

void Forwarding::go_on(ClientEnd end) {
  switch (end) {
    case ClientEnd::kLate:
      throw ApiError(504, "deadline_exceeded",
                     "the language model has not answered in the time for the request");
    case ClientEnd::kStopped:
      if (gone_.stop_requested()) throw client_left();
      throw ApiError(503, "draining", "the server is stopping");
    default: break;
  }
  if (may_ask_another()) return attempt();
  throw ApiError(kBadGateway, "llm_failed",
                 std::string("the language model ") + reason_of(end) + ", and no other is asked (" +
                     std::to_string(tried_.size()) + " tried)");
}

void Forwarding::end_span(ClientEnd end) const try {
  if (!trace_) return;
  const std::string& base = tried_.back()->url();
  Span span{
      .context = context_,
      .parent_id = {},
      .name = call_.method,
      .kind = SpanKind::kClient,
      .begin = sent_,
      .end = Clock::now(),
      .attributes = {{"http.request.method", call_.method},
                     {"url.full", base + call_.target.substr(0, call_.target.find('?'))},
                     {"http.request.resend_count", static_cast<std::int64_t>(tried_.size()) - 1}}};
  if (const std::optional<Url> url = parse_url(base)) {
    span.attributes.emplace_back("server.address", url->host);
    span.attributes.emplace_back("server.port", std::int64_t{url->port});
  }
  if (status_ != 0)
    span.attributes.emplace_back("http.response.status_code", std::int64_t{status_});
  span.has_failed = end != ClientEnd::kComplete || status_ >= 400;
  if (end != ClientEnd::kComplete) {
    span.attributes.emplace_back("error.type", error_type_of(end));
  } else if (status_ >= 400) {
    span.attributes.emplace_back("error.type", std::to_string(status_));
  }
  trace_->add(std::move(span));
} catch (const std::bad_alloc&) {  // NOLINT: a span less
}

void Forwarding::end_stream(ClientEnd end) {
  bool is_whole = end == ClientEnd::kComplete;
  try {
    if (!is_whole && takes_event_ && ends_event(tail_)) {
      is_whole = stream_->put_last(error_event(end));
    }
  } catch (const std::bad_alloc&) {
    // Then it ends without a reason.
  }
  stream_->end(is_whole);
}

std::string Forwarding::error_event(ClientEnd end) const {
  const ApiError error =
      end == ClientEnd::kLate
          ? ApiError(504, "llm_timeout",
                     "the language model has sent nothing more in time (--llm-idle-timeout)")
          : ApiError(kBadGateway, "llm_failed", "the language model broke its answer off");
  RequestHead head;
  head.id = request_id_;
  const Reply reply = error_reply(error, head);
  const std::span<const std::byte> json = reply.body.front().bytes;
  return "data: " + std::string(reinterpret_cast<const char*>(json.data()), json.size()) + "\n\n";
}

}  // namespace fovea::serve
