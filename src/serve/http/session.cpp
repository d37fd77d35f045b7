#include "serve/http/session.h"

#include <algorithm>

#include "core/interrupt.h"
#include "serve/http/body_reader.h"
#include "serve/http/head_parser.h"
#include "serve/http/operation.h"
#include "serve/text/url.h"
#include "serve/tracing/tracer.h"

namespace fovea::serve {
namespace {

using std::chrono::milliseconds;

/// The longest body of a refused request that is read, so that its connection lives on.
constexpr std::uint64_t kCheapBody = std::uint64_t{64} << 10;
/// Time for the client to read a reply that came before all of its request was read.
constexpr milliseconds kLinger{5'000};
/// Time for a client of TLS to end the connection in order.
constexpr milliseconds kTlsShutdown{1'000};
/// Between two looks at a body that comes piece by piece, where nobody could say that more is
/// there.
constexpr milliseconds kLongestWait{1'000};
/// The longest body that the thread of a connection parses for a handler.
constexpr std::size_t kInstantBody = std::size_t{64} << 10;
/// Time for a reply that says that the server stops.
constexpr milliseconds kLastReply{1'000};

/// Adds one to a counter while it lives.
class Counted {
 public:
  explicit Counted(std::atomic<std::int64_t>& counter) : counter_(counter) { ++counter_; }
  ~Counted() { --counter_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<std::int64_t>& counter_;
};

/// Closes a reply that was waited for, however the waiting ends.
class Closing {
 public:
  explicit Closing(PendingReply& pending) : pending_(pending) {}
  ~Closing() { pending_.close(); }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;

 private:
  PendingReply& pending_;
};

/// Closes a body that came piece by piece, however its sending ends.
class StreamClosing {
 public:
  explicit StreamClosing(ReplyStream& stream) : stream_(stream) {}
  ~StreamClosing() { stream_.close(); }
  StreamClosing(const StreamClosing&) = delete;
  StreamClosing& operator=(const StreamClosing&) = delete;

 private:
  ReplyStream& stream_;
};

/// Runs a handler on a thread that computes. An exception of the handler is the reply.
void handle(const Route& route, const std::shared_ptr<Exchange>& exchange,
            const PathArguments& arguments) {
  const Interrupt interrupt(exchange->gone(), exchange->request().deadline, "the request");
  const InterruptScope scope(&interrupt);  // its reads end when no client waits for the reply
  try {
    route.handler(exchange, arguments);
  } catch (...) {
    exchange->fail();
  }
}

/// Refuses compressed bodies: a body is taken as it comes. Source: RFC 9110, 8.4 and 15.5.16.
void check_coding(const Transaction& now) {
  const std::string* coding = find_header(now.head.headers, "Content-Encoding");
  if (coding == nullptr || to_lower(*coding) == "identity") return;
  throw ApiError(415, "unsupported_content_type",
                 "Content-Encoding: expected a body without coding, got " + shortened(*coding, 60),
                 "Content-Encoding");
}

/// Whether the client ends the body of a reply, unless that ends before.
bool is_ended_by_client(const Reply& reply) {
  return reply.stream && reply.stream_until != Clock::time_point::max();
}

/// Puts what is there of a body that comes piece by piece behind the head, so that both are sent
/// together. @return its bytes.
std::size_t take_first(Reply& reply, bool in_chunks) {
  std::string bytes = reply.stream->take().bytes;
  const std::size_t size = bytes.size();
  if (size > 0) reply.body.push_back(body_part(in_chunks ? chunk_of(bytes) : std::move(bytes)));
  return size;
}

ApiError headers_too_large(const HttpOptions& options) {
  return {
      431, "headers_too_large",
      "the head of a request has at most " + std::to_string(options.max_header_bytes) + " bytes"};
}

}  // namespace

Session::Session(Socket socket, std::shared_ptr<TlsContext> tls, Accepted client,
                 std::shared_ptr<ConnectionPlace> place, SessionGroup& group)
    : group_(group),
      options_(group.options),
      place_(std::move(place)),
      client_(std::move(client)),
      stream_(std::move(socket), std::move(tls)),
      changed_(std::make_shared<Event>(stream_.executor())),
      watch_(stream_, changed_, options_.max_header_bytes) {
  std::list<Session*>& idle = group_.in(state_);
  entry_ = idle.insert(idle.end(), this);
  change_to(SessionState::kIdle);
}

Session::~Session() {
  change_to(SessionState::kWorking);  // whose list has no time
  group_.in(state_).erase(entry_);
}

void Session::change_to(SessionState state) {
  std::list<Session*>& to = group_.in(state);
  to.splice(to.end(), group_.in(state_), entry_);
  state_ = state;
  since_ = Clock::now();
  const std::list<Session*>& idle = group_.in(SessionState::kIdle);
  const Clock::time_point first = idle.empty() ? Clock::time_point::max() : idle.front()->since_;
  group_.idle_since.store(first.time_since_epoch().count(), std::memory_order_relaxed);
}

void Session::start() {
  const auto run_session = [](std::shared_ptr<Session> session) -> Awaitable<void> {
    co_await session->run();
  };
  // An exception says that there is no memory; the client sees its connection close.
  spawn(stream_.executor(), run_session(shared_from_this()), [](const std::exception_ptr&) {});
}

void Session::drain() {
  if (state_ == SessionState::kIdle) stream_.cancel();
}

void Session::abort() {
  is_aborted_ = true;
  if (state_ == SessionState::kWorking) {
    stream_.set_deadline(Clock::now() + kLastReply);  // of a piece that the client does not take
    changed_->notify();
  } else {
    stream_.close();
  }
}

void Session::give_way() {
  if (state_ == SessionState::kIdle) stream_.cancel();  // a request that is here already is served
  if (state_ == SessionState::kTalking) stream_.close();
}

Awaitable<void> Session::run() {
  stream_.set_deadline(Clock::now() + options_.header_timeout);
  if (!co_await stream_.handshake()) co_return;
  // A client that has asked for something may do so again; others have as long as a head may take.
  milliseconds timeout = options_.header_timeout;
  while (co_await wait_for_request(timeout)) {
    timeout = options_.keep_alive_timeout;
    Transaction now = begin_transaction();
    const bool goes_on = co_await serve(now);
    if (goes_on) continue;
    co_await close(now);
    co_return;
  }
  if (is_aborted_) co_return;
  stream_.set_deadline(Clock::now() + kTlsShutdown);
  co_await stream_.shut_down(true);
}

Awaitable<bool> Session::serve(Transaction& now) {
  co_await attempt(now, &Session::read_head);
  if (now.client_left && now.received == Received::kNothing) co_return false;
  const Counted counted(group_.requests_in_progress);
  co_await attempt(now, &Session::admit);
  co_await attempt(now, &Session::read_body);
  if (now.is_open()) co_await work(now);
  bool goes_on = false;
  if (!now.client_left) goes_on = co_await send(now);
  observe(now);
  now.permit = {};
  now.body.reset();
  if (goes_on && now.received != Received::kAll) {
    goes_on = co_await drop_body(now.framing.content_length);
  }
  co_return goes_on;
}

Awaitable<void> Session::attempt(Transaction& now, Step step) {
  if (!now.is_open()) co_return;
  try {
    co_await (this->*step)(now);
  } catch (const ClientLeft&) {
    now.client_left = true;
  } catch (...) {
    now.fail(current_api_error());
  }
}

Awaitable<bool> Session::wait_for_request(milliseconds timeout) {
  stream_.input().shrink();
  if (state_ != SessionState::kIdle) change_to(SessionState::kIdle);
  stream_.set_deadline(since_ + timeout);
  Input& input = stream_.input();
  for (;;) {
    input.consume(leading_breaks(input.view()));
    if (!input.view().empty() && input.view() != "\r") break;
    if (group_.is_draining) co_return false;
    const IoResult got = co_await stream_.fill(options_.max_header_bytes);
    if (got.bytes == 0) co_return false;
  }
  change_to(SessionState::kTalking);
  co_return true;
}

Transaction Session::begin_transaction() {
  Transaction now;
  now.head.id = group_.ids.next();
  now.head.peer = client_.peer;
  now.head.client = place_->client();
  now.head.is_own_user = client_.is_own_user;
  now.head.arrival = Clock::now();
  now.head.deadline = now.head.arrival + options_.request_timeout;
  return now;
}

Awaitable<void> Session::read_head(Transaction& now) {
  stream_.set_deadline(now.head.arrival + options_.header_timeout);
  Input& input = stream_.input();
  HeadScanner scanner;
  std::optional<std::size_t> end = scanner.scan(input.view());
  while (!end) {
    if (input.view().size() >= options_.max_header_bytes) throw headers_too_large(options_);
    const IoResult got = co_await stream_.fill(options_.max_header_bytes);
    if (got.has_expired) {
      throw ApiError(408, "slow_request", "the head of the request comes too slowly");
    }
    if (got.bytes == 0) throw ClientLeft();
    end = scanner.scan(input.view());
  }
  now.framing = parse_head(input.view().substr(0, *end), options_.max_headers, now.head);
  input.consume(*end);
  now.received = now.framing.has_body() ? Received::kHead : Received::kAll;
}

Awaitable<void> Session::admit(Transaction& now) {
  if (auto reply = options_.cors.preflight(now.head)) now.answer(std::move(*reply));
  if (!now.is_open()) co_return;
  find_route(now);
  if (now.is_open()) check_coding(now);
  if (now.is_open()) ask_gate(now);
  co_return;
}

void Session::find_route(Transaction& now) const {
  const auto no_route = [&] {
    now.fail(ApiError(404, "route_not_found",
                      "there is no route " + now.head.path + "; /openapi.json lists all"));
  };
  const auto path = below_root(now.head.path, options_.root_path);
  if (!path) return no_route();
  now.head.path = std::string(*path);
  auto found = group_.parts.router->find(now.head.method, now.head.path);
  if (std::holds_alternative<Router::NoPath>(found)) return no_route();
  if (const auto* other = std::get_if<Router::NoMethod>(&found)) {
    now.fail(ApiError(405, "method_not_allowed", now.head.path + " takes " + other->allowed));
    now.reply->headers.push_back({"Allow", other->allowed});
    return;
  }
  auto& [route, arguments] = std::get<Router::Found>(found);
  now.route = route;
  now.arguments = std::move(arguments);
  if (group_.parts.begin_trace) now.head.trace = group_.parts.begin_trace(now.head, *route);
}

void Session::ask_gate(Transaction& now) const {
  if (now.framing.content_length > options_.max_body_bytes) {
    return now.fail(body_too_large(options_));
  }
  auto decision = group_.parts.gate(now.head, *now.route);
  if (auto* refusal = std::get_if<Reply>(&decision)) return now.answer(std::move(*refusal));
  now.permit = std::move(std::get<Permit>(decision));
}

Awaitable<void> Session::read_body(Transaction& now) {
  now.body = std::make_shared<HeldBody>();
  now.body->room = std::move(now.permit.room);
  if (now.received != Received::kAll) {
    BodyReader reader(stream_, options_, now);
    co_await reader.read();
  }
  if (now.permit.enter) now.permit.place = now.permit.enter();
}

Awaitable<void> Session::work(Transaction& now) {
  change_to(SessionState::kWorking);
  co_await attempt(now, &Session::await_reply);
  co_await watch_.stop();
  change_to(SessionState::kTalking);
}

Awaitable<void> Session::await_reply(Transaction& now) {
  const Clock::time_point limit = now.head.deadline + options_.reply_grace;
  const auto pending = std::make_shared<PendingReply>(stream_.executor(), changed_);
  const Closing closing(*pending);
  const bool is_instant = now.route->is_instant && now.body->bytes.size() <= kInstantBody;
  const std::weak_ptr<Exchange> handled = hand_over(now, pending, is_instant);
  if (!is_instant) watch_.start(shared_from_this());
  std::optional<Reply> reply = pending->take();
  while (!reply && !watch_.client_left() && !is_aborted_ && Clock::now() < limit) {
    co_await changed_->wait_until(limit);
    reply = pending->take();
  }
  if (reply) {
    now.answer(std::move(*reply));
    co_return;
  }
  if (const auto exchange = handled.lock()) exchange->leave();
  if (watch_.client_left()) throw ClientLeft();
  if (is_aborted_) throw ApiError(503, "draining", "the server stops");
  throw ApiError(504, "deadline_exceeded", "the time for the request has passed");
}

std::weak_ptr<Exchange> Session::hand_over(Transaction& now, std::shared_ptr<PendingReply> pending,
                                           bool is_instant) {
  if (now.head.trace) now.head.trace->end_stage("receive", Clock::now());
  Request request;
  static_cast<RequestHead&>(request) = now.head;
  request.body = SharedBytes(now.body, &now.body->bytes);
  now.body.reset();
  auto exchange = std::make_shared<Exchange>(
      std::move(request),
      [pending = std::move(pending)](Reply reply) { pending->put(std::move(reply)); });
  std::weak_ptr<Exchange> handled = exchange;
  // The handler alone holds it: if it is dropped, that is noticed.
  auto task = [route = now.route, arguments = std::move(now.arguments),
               exchange = std::move(exchange)] { handle(*route, exchange, arguments); };
  if (is_instant) {
    task();
  } else {
    group_.parts.run_task(std::move(task));
  }
  return handled;
}

bool Session::may_go_on(const Transaction& now) const {
  const Framing& framing = now.framing;
  const bool is_cheap = !framing.is_chunked && !framing.expects_continue &&
                        framing.content_length <= kCheapBody && now.outcome.bytes_in == 0;
  return framing.keep_alive && !group_.is_draining && !is_aborted_ &&
         (now.received == Received::kAll || is_cheap);
}

milliseconds Session::reply_timeout() const {
  return is_aborted_ ? kLastReply : options_.reply_idle_timeout;
}

ReplyPace Session::pace() const {
  return {.idle_timeout = reply_timeout(),
          .floor = RateFloor(options_.min_reply_rate, options_.rate_grace, options_.rate_window,
                             Clock::now())};
}

Awaitable<bool> Session::send(Transaction& now) {
  const bool takes_chunks = !now.framing.is_http_1_0;
  const bool has_end = !now.reply->stream || now.reply->stream_length || takes_chunks;
  bool may_follow = may_go_on(now) && has_end;
  const ReplyFrame frame{.server = options_.server_name,
                         .request_id = now.head.id,
                         .now = std::time(nullptr),
                         .keep_alive = may_follow,
                         .takes_chunks = takes_chunks};
  options_.cors.add_headers(now.head, *now.reply);
  const bool in_chunks = is_sent_in_chunks(*now.reply, frame);
  const bool is_streamed =
      now.reply->stream && now.head.method != "HEAD" && has_body(now.outcome.status);
  try {
    const std::size_t size = is_streamed ? take_first(*now.reply, in_chunks) : 0;
    co_await write_reply(stream_, pace(), reply_head(*now.reply, frame), now);
    if (size > 0) now.outcome.bytes_out = size;
    now.may_leave = size > 0 && is_ended_by_client(*now.reply);
    if (is_streamed && !co_await send_stream(now, in_chunks)) {
      may_follow = false;
      now.has_broken_off = true;
      now.outcome.error_code = "reply_broken_off";
    }
  } catch (const ClientLeft&) {
    now.client_left = true;
  } catch (const ApiError& slow) {
    now.outcome.error_code = slow.code();
    now.client_left = true;
  }
  now.reply.reset();
  co_return may_follow && !now.client_left;
}

Awaitable<bool> Session::send_stream(Transaction& now, bool in_chunks) {
  ReplyStream& body = *now.reply->stream;
  const StreamClosing closing(body);
  body.on_change([executor = stream_.executor(), changed = changed_] {
    try {
      asio::post(executor, [changed] { changed->notify(); });
    } catch (const std::bad_alloc&) {
      // The connection looks again after a while.
    }
  });
  change_to(SessionState::kWorking);
  watch_.start(shared_from_this());
  bool is_whole = false;
  std::exception_ptr thrown;
  try {
    is_whole = co_await relay(body, now, in_chunks);
  } catch (...) {
    thrown = std::current_exception();
  }
  co_await watch_.stop();
  change_to(SessionState::kTalking);
  if (thrown) std::rethrow_exception(thrown);
  co_return is_whole;
}

Awaitable<bool> Session::relay(ReplyStream& body, Transaction& now, bool in_chunks) {
  const Clock::time_point until = now.reply->stream_until;
  for (;;) {
    const bool has_more = now.may_leave && !stream_.input().view().empty();
    const bool is_over = has_more || Clock::now() >= until;
    ReplyStream::Piece piece = body.take();
    if (watch_.client_left()) throw ClientLeft();
    if (is_aborted_) throw ApiError(503, "draining", "the server stops");
    const std::size_t size = piece.bytes.size();
    if (size > 0) {
      // Not in one expression, whose temporary GCC 12 would destroy twice.
      std::string bytes = std::move(piece.bytes);
      if (in_chunks) bytes = chunk_of(bytes);
      co_await write_piece(stream_, reply_timeout(), std::move(bytes));
      now.outcome.bytes_out += size;
      now.may_leave = is_ended_by_client(*now.reply);
    }
    if (piece.has_ended || is_over) {
      const bool is_whole = piece.is_whole || !piece.has_ended;
      if (is_whole && in_chunks) {
        co_await write_piece(stream_, reply_timeout(), chunk_of({}));
      }
      co_return is_whole;
    }
    if (size == 0) co_await changed_->wait_until(std::min(until, Clock::now() + kLongestWait));
  }
}

Awaitable<bool> Session::drop_body(std::uint64_t size) {
  stream_.set_deadline(Clock::now() + options_.header_timeout);
  Input& input = stream_.input();
  for (;;) {
    const std::uint64_t here = std::min<std::uint64_t>(size, input.view().size());
    input.consume(here);
    size -= here;
    if (size == 0) co_return true;
    const IoResult got = co_await stream_.fill(options_.max_header_bytes);
    if (got.bytes == 0) co_return false;
  }
}

Awaitable<void> Session::close(const Transaction& last) {
  if (last.client_left || is_aborted_) co_return;
  const bool is_unread = last.received != Received::kAll || !stream_.input().view().empty();
  stream_.set_deadline(Clock::now() + (is_unread ? kLinger : kTlsShutdown));
  co_await stream_.shut_down(!last.has_broken_off);
  if (is_unread) co_await stream_.linger();
}

void Session::observe(const Transaction& now) const {
  if (!group_.parts.observer) return;
  const bool has_failed = now.client_left && !now.may_leave;
  group_.parts.observer({.head = now.head,
                         .route = now.route,
                         .status = has_failed ? 499 : now.outcome.status,
                         .error_code = now.outcome.error_code,
                         .error_detail = now.outcome.error_detail,
                         .bytes_in = now.outcome.bytes_in,
                         .bytes_out = now.outcome.bytes_out,
                         .duration = Clock::now() - now.head.arrival});
}

}  // namespace fovea::serve
