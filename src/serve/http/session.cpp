#include "serve/http/session.h"

#include <algorithm>

#include "core/interrupt.h"
#include "serve/http/body_reader.h"
#include "serve/http/head_parser.h"
#include "serve/http/operation.h"
#include "serve/http/reply_writer.h"
#include "serve/text/url.h"

namespace fovea::serve {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kInputPiece = std::size_t{4} << 10;
/// A body of a refused request that is read, so that its connection lives on.
constexpr std::uint64_t kCheapBody = std::uint64_t{64} << 10;
/// For the client to read a reply that came before all of its request was read.
constexpr milliseconds kLinger{5'000};
/// For a client of TLS to say goodbye.
constexpr milliseconds kGoodbye{1'000};
/// For a reply that says that the server stops.
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

/// Closes a mailbox when it goes.
class Closing {
 public:
  explicit Closing(Mailbox& mailbox) : mailbox_(mailbox) {}
  ~Closing() { mailbox_.close(); }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;

 private:
  Mailbox& mailbox_;
};

/// On a worker thread: what the handler throws is the reply.
void handle(const Route& route, const std::shared_ptr<Exchange>& exchange,
            const PathArguments& arguments) {
  const Interrupt interrupt(exchange->gone(), exchange->request().deadline, "the request");
  const InterruptScope scope(&interrupt);  // whatever it reads ends when nobody waits for it
  try {
    route.handler(exchange, arguments);
  } catch (...) {
    exchange->fail();
  }
}

/// Bodies are read as they come. Source: RFC 9110, 8.4 and 15.5.16.
void check_coding(const Turn& turn) {
  const std::string* coding = find_header(turn.head.headers, "Content-Encoding");
  if (coding == nullptr || to_lower(*coding) == "identity") return;
  throw ApiError(415, "unsupported_content_type",
                 "Content-Encoding: expected a body without coding, got " + shortened(*coding, 60),
                 "Content-Encoding");
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
      changed_(std::make_shared<Event>(stream_.executor())) {
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
  // What it throws is that there is no memory, and there is nobody to tell.
  spawn(stream_.executor(), run_session(shared_from_this()), [](const std::exception_ptr&) {});
}

void Session::drain() {
  if (state_ == SessionState::kIdle) stream_.cancel();
}

void Session::abort() {
  is_aborted_ = true;
  if (state_ == SessionState::kWorking) {
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
  while (co_await wait_for_request()) {
    Turn turn = begin_turn();
    co_await serve(turn);
    if (!turn.keep_alive) {
      co_await close(turn);
      co_return;
    }
  }
}

Awaitable<bool> Session::wait_for_request() {
  input_.shrink();
  if (state_ != SessionState::kIdle) change_to(SessionState::kIdle);
  // Who has asked for something may do so again; the others have as long as a head may take.
  stream_.set_deadline(since_ +
                       (has_served_ ? options_.keep_alive_timeout : options_.header_timeout));
  for (;;) {
    input_.consume(leading_breaks(input_.view()));
    if (!input_.view().empty() && input_.view() != "\r") break;
    if (group_.is_draining) co_return false;
    const IoResult got = co_await fill_input();
    if (got.bytes == 0) co_return false;
  }
  change_to(SessionState::kTalking);
  has_served_ = true;
  co_return true;
}

Turn Session::begin_turn() {
  Turn turn;
  turn.head.id = group_.ids.next();
  turn.head.peer = client_.peer;
  turn.head.client = place_->client();
  turn.head.is_own_user = client_.is_own_user;
  turn.head.arrival = Clock::now();
  turn.head.deadline = turn.head.arrival + options_.request_timeout;
  return turn;
}

Awaitable<void> Session::serve(Turn& turn) {
  co_await attempt(turn, read_head(turn));
  if (turn.has_left && !turn.has_head) co_return;  // it has asked for nothing
  const Counted counted(group_.requests_in_progress);
  if (turn.is_open()) co_await attempt(turn, admit_body(turn));
  if (turn.is_open()) {
    change_to(SessionState::kWorking);
    co_await attempt(turn, work(turn));
    co_await stop_watching();
    change_to(SessionState::kTalking);
  }
  if (!turn.has_left) co_await send(turn);
  turn.keep_alive = turn.keep_alive && !turn.has_left;
  observe(turn);
  turn.permit = {};
  turn.body.reset();
  const bool is_unread = turn.has_head && !turn.has_body;
  if (turn.keep_alive && is_unread) {
    turn.keep_alive = co_await drop_body(turn.framing.content_length);
  }
}

Awaitable<void> Session::attempt(Turn& turn, Awaitable<void> step) {
  try {
    co_await std::move(step);
  } catch (const ClientLeft&) {
    turn.has_left = true;
  } catch (...) {
    turn.fail(current_api_error());
  }
}

Awaitable<void> Session::read_head(Turn& turn) {
  stream_.set_deadline(turn.head.arrival + options_.header_timeout);
  HeadScanner scanner;
  std::optional<std::size_t> end = scanner.scan(input_.view());
  while (!end) {
    if (input_.view().size() >= options_.max_header_bytes) throw headers_too_large(options_);
    const IoResult got = co_await fill_input();
    if (got.has_expired) {
      throw ApiError(408, "slow_request", "the head of the request comes too slowly");
    }
    if (got.bytes == 0) throw ClientLeft();
    end = scanner.scan(input_.view());
  }
  turn.framing = parse_head(input_.view().substr(0, *end), options_.max_headers, turn.head);
  input_.consume(*end);
  turn.has_head = true;
  turn.has_body = !turn.framing.has_body();
  turn.keep_alive = turn.framing.keep_alive;
}

Awaitable<void> Session::admit_body(Turn& turn) {
  find_route(turn);
  if (turn.is_open()) check_coding(turn);
  if (turn.is_open()) ask_gate(turn);
  if (!turn.is_open()) co_return;
  turn.body = std::make_shared<HeldBody>();
  turn.body->room = std::move(turn.permit.room);
  if (!turn.has_body) {
    BodyReader reader(stream_, input_, options_, turn);
    co_await reader.read();
  }
  if (turn.permit.enter) turn.permit.place = turn.permit.enter();
}

void Session::find_route(Turn& turn) const {
  const auto no_route = [&] {
    turn.fail(ApiError(404, "route_not_found",
                       "there is no route " + turn.head.path + "; /openapi.json lists all"));
  };
  const auto path = below_root(turn.head.path, options_.root_path);
  if (!path) return no_route();
  turn.head.path = std::string(*path);
  auto found = group_.parts.router->find(turn.head.method, turn.head.path);
  if (std::holds_alternative<Router::NoPath>(found)) return no_route();
  if (const auto* other = std::get_if<Router::NoMethod>(&found)) {
    turn.fail(ApiError(405, "method_not_allowed", turn.head.path + " takes " + other->allowed));
    turn.reply->headers.push_back({"Allow", other->allowed});
    return;
  }
  auto& [route, arguments] = std::get<Router::Found>(found);
  turn.route = route;
  turn.arguments = std::move(arguments);
}

void Session::ask_gate(Turn& turn) const {
  if (turn.framing.content_length > options_.max_body_bytes) {
    return turn.fail(body_too_large(options_));
  }
  auto decision = group_.parts.gate(turn.head, *turn.route);
  if (auto* refusal = std::get_if<Reply>(&decision)) return turn.answer(std::move(*refusal));
  turn.permit = std::move(std::get<Permit>(decision));
}

std::weak_ptr<Exchange> Session::hand_over(Turn& turn, std::shared_ptr<Mailbox> mailbox) {
  Request request;
  static_cast<RequestHead&>(request) = turn.head;
  request.body = SharedBytes(turn.body, &turn.body->bytes);
  turn.body.reset();
  auto exchange = std::make_shared<Exchange>(
      std::move(request),
      [mailbox = std::move(mailbox)](Reply reply) { mailbox->put(std::move(reply)); });
  std::weak_ptr<Exchange> watched = exchange;
  // Only the handler holds it: if it is dropped, that is noticed.
  auto task = [route = turn.route, arguments = std::move(turn.arguments),
               exchange = std::move(exchange)] { handle(*route, exchange, arguments); };
  if (turn.route->is_instant) {
    task();
  } else {
    group_.parts.run_task(std::move(task));
  }
  return watched;
}

Awaitable<void> Session::work(Turn& turn) {
  const Clock::time_point limit = turn.head.deadline + options_.reply_grace;
  const auto mailbox = std::make_shared<Mailbox>(stream_.executor(), changed_);
  const Closing closing(*mailbox);
  const std::weak_ptr<Exchange> watched = hand_over(turn, mailbox);
  if (!turn.route->is_instant) start_watching();
  if (std::optional<Reply> reply = co_await wait_for_reply(*mailbox, limit)) {
    turn.answer(std::move(*reply));
    co_return;
  }
  if (const auto exchange = watched.lock()) exchange->leave();
  if (has_left_) throw ClientLeft();
  if (is_aborted_) throw ApiError(503, "draining", "the server stops");
  throw ApiError(504, "deadline_exceeded", "the time for the request has passed");
}

Awaitable<std::optional<Reply>> Session::wait_for_reply(Mailbox& mailbox, Clock::time_point limit) {
  std::optional<Reply> reply = mailbox.take();
  while (!reply && !has_left_ && !is_aborted_ && Clock::now() < limit) {
    co_await changed_->wait_until(limit);
    reply = mailbox.take();
  }
  co_return reply;
}

void Session::start_watching() {
  const auto watch_session = [](std::shared_ptr<Session> session) -> Awaitable<void> {
    co_await session->watch();
  };
  stream_.set_deadline(Clock::time_point::max());
  const auto ended = [session = shared_from_this()](const std::exception_ptr&) {
    session->is_watching_ = false;
    session->changed_->notify();
  };
  watch_ends_ = false;
  is_watching_ = true;
  try {
    spawn(stream_.executor(), watch_session(shared_from_this()), ended);
  } catch (...) {
    is_watching_ = false;
    throw;
  }
}

Awaitable<void> Session::watch() {
  while (!watch_ends_ && input_.view().size() < options_.max_header_bytes) {
    const IoResult got = co_await fill_input();
    if (got.bytes > 0) continue;
    has_left_ = !watch_ends_;
    co_return;
  }
}

Awaitable<void> Session::stop_watching() {
  watch_ends_ = true;
  if (is_watching_) stream_.cancel();
  while (is_watching_) co_await changed_->wait();
}

Awaitable<IoResult> Session::fill_input() {
  const std::size_t held = input_.view().size();
  const std::size_t limit = std::max(options_.max_header_bytes, held + 1);
  const std::span<char> room = input_.prepare(std::min(kInputPiece, limit - held));
  IoResult got = co_await stream_.read_some(asio::buffer(room.data(), room.size()));
  input_.commit(got.bytes);
  co_return got;
}

bool Session::may_go_on(const Turn& turn) const {
  const Framing& framing = turn.framing;
  const bool is_cheap = !framing.is_chunked && !framing.expects_continue &&
                        framing.content_length <= kCheapBody && turn.bytes_in == 0;
  return turn.keep_alive && !group_.is_draining && !is_aborted_ && (turn.has_body || is_cheap);
}

ReplyPace Session::pace() const {
  return {.idle_timeout = is_aborted_ ? kLastReply : options_.reply_idle_timeout,
          .floor = RateFloor(options_.min_reply_rate, options_.rate_grace, options_.rate_window,
                             Clock::now())};
}

Awaitable<void> Session::send(Turn& turn) {
  turn.keep_alive = may_go_on(turn);
  const ReplyFrame frame{.server = options_.server_name,
                         .request_id = turn.head.id,
                         .now = std::time(nullptr),
                         .keep_alive = turn.keep_alive};
  try {
    co_await write_reply(stream_, pace(), reply_head(*turn.reply, frame), turn);
  } catch (const ClientLeft&) {
    turn.has_left = true;
  } catch (const ApiError& slow) {
    turn.error_code = slow.code();
    turn.has_left = true;
  }
  turn.reply.reset();
}

Awaitable<bool> Session::drop_body(std::uint64_t size) {
  stream_.set_deadline(Clock::now() + options_.header_timeout);
  for (;;) {
    const std::uint64_t here = std::min<std::uint64_t>(size, input_.view().size());
    input_.consume(here);
    size -= here;
    if (size == 0) co_return true;
    const IoResult got = co_await fill_input();
    if (got.bytes == 0) co_return false;
  }
}

Awaitable<void> Session::close(const Turn& turn) {
  if (turn.has_left || is_aborted_) co_return;
  const bool is_unread = !turn.has_head || !turn.has_body || !input_.view().empty();
  stream_.set_deadline(Clock::now() + (is_unread ? kLinger : kGoodbye));
  co_await stream_.say_goodbye();
  if (is_unread) co_await stream_.linger();
}

void Session::observe(const Turn& turn) const {
  if (!group_.parts.observer) return;
  group_.parts.observer({.head = turn.head,
                         .route = turn.route,
                         .status = turn.has_left ? 499 : turn.status,
                         .error_code = turn.error_code,
                         .error_detail = turn.error_detail,
                         .bytes_in = turn.bytes_in,
                         .bytes_out = turn.bytes_out,
                         .duration = Clock::now() - turn.head.arrival});
}

}  // namespace fovea::serve
