#pragma once

#include <array>
#include <atomic>
#include <list>
#include <memory>

#include "serve/http/client_watch.h"
#include "serve/http/connections.h"
#include "serve/http/listening_socket.h"
#include "serve/http/pending_reply.h"
#include "serve/http/reply_stream.h"
#include "serve/http/reply_writer.h"
#include "serve/http/stream.h"
#include "serve/http/transaction.h"

namespace fovea::serve {

class Session;

/// The party that a session waits for.
enum class SessionState : std::uint8_t {
  kIdle,     ///< a request: the connection has just come, or had its reply
  kTalking,  ///< the client: bytes of a request come, or those of its reply go
  kWorking,  ///< a handler, which has the request
};

/// The sessions of one thread, and what they share. Only that thread touches it, but for the
/// atomics.
struct SessionGroup {
  const HttpOptions& options;
  const Server::Parts& parts;
  std::atomic<std::int64_t>& requests_in_progress;
  RequestIds ids = {};
  /// By their state, in the order in which they came into it.
  std::array<std::list<Session*>, 3> sessions = {};
  /// Since when the first of those that are idle is, in ticks of the clock; max: there is none.
  std::atomic<Clock::rep> idle_since = Clock::time_point::max().time_since_epoch().count();
  bool is_draining = false;

  [[nodiscard]] std::list<Session*>& in(SessionState state) {
    return sessions[static_cast<std::size_t>(state)];
  }
};

/// A connection and its requests, one after the other. Lives as long as its coroutine.
class Session : public std::enable_shared_from_this<Session> {
 public:
  /// @param client as accept_from() gives it; its descriptor is in `socket` by now.
  /// @param place among the connections, held until this ends. @param group must outlive this.
  Session(Socket socket, std::shared_ptr<TlsContext> tls, Accepted client,
          std::shared_ptr<ConnectionPlace> place, SessionGroup& group);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Starts, and returns.
  void start();
  /// Closes it if there is no request.
  void drain();
  /// Answers the request that a handler has with 503, ends everything else.
  void abort();
  /// Ends it for another connection, unless a handler works.
  void give_way();
  [[nodiscard]] const ConnectionPlace& place() const noexcept { return *place_; }

 private:
  /// A part of the way of a request to its reply. What it throws becomes the reply.
  using Step = Awaitable<void> (Session::*)(Transaction&);

  /// The connection: greets, serves one request after the other, closes.
  [[nodiscard]] Awaitable<void> run();
  /// One request, step by step. @return whether another may follow it.
  [[nodiscard]] Awaitable<bool> serve(Transaction& now);
  /// Takes a step, unless the reply is there already or the client has left.
  [[nodiscard]] Awaitable<void> attempt(Transaction& now, Step step);

  /// @return whether a request begins within that time.
  [[nodiscard]] Awaitable<bool> wait_for_request(std::chrono::milliseconds timeout);
  [[nodiscard]] Transaction begin_transaction();
  [[nodiscard]] Awaitable<void> read_head(Transaction& now);
  /// Finds the route and asks the gate: a refused body is not read.
  [[nodiscard]] Awaitable<void> admit(Transaction& now);
  /// Reads the body, then takes a place among the requests that are worked on.
  [[nodiscard]] Awaitable<void> read_body(Transaction& now);
  /// Lets the handler work, while the client is watched.
  [[nodiscard]] Awaitable<void> work(Transaction& now);
  /// Hands the request to its handler, and waits for the reply, for the client to leave, for the
  /// server to stop or for the deadline.
  [[nodiscard]] Awaitable<void> await_reply(Transaction& now);
  /// @return whether another request may follow the reply.
  [[nodiscard]] Awaitable<bool> send(Transaction& now);
  /// Sends the body of a reply as it comes, while the client is watched. @return whether all came.
  [[nodiscard]] Awaitable<bool> send_stream(Transaction& now, bool in_chunks);
  /// @throws ClientLeft, ApiError(408, "slow_reader"), ApiError(503, "draining").
  [[nodiscard]] Awaitable<bool> relay(ReplyStream& body, Transaction& now, bool in_chunks);
  /// Reads and drops the body of a refused request. @return whether all of it came.
  [[nodiscard]] Awaitable<bool> drop_body(std::uint64_t size);
  [[nodiscard]] Awaitable<void> close(const Transaction& last);

  void change_to(SessionState state);
  void find_route(Transaction& now) const;
  void ask_gate(Transaction& now) const;
  [[nodiscard]] std::weak_ptr<Exchange> hand_over(Transaction& now,
                                                  std::shared_ptr<PendingReply> pending,
                                                  bool is_instant);
  /// For the client to take some of a reply.
  [[nodiscard]] std::chrono::milliseconds reply_timeout() const;
  [[nodiscard]] ReplyPace pace() const;
  [[nodiscard]] bool may_go_on(const Transaction& now) const;
  void observe(const Transaction& now) const;

  SessionGroup& group_;
  const HttpOptions& options_;
  std::shared_ptr<ConnectionPlace> place_;
  Accepted client_;
  Stream stream_;
  std::shared_ptr<Event> changed_;  ///< a reply is there, the watch has ended, or abort()
  ClientWatch watch_;
  SessionState state_ = SessionState::kIdle;
  Clock::time_point since_;              ///< of the state
  std::list<Session*>::iterator entry_;  ///< of this in the list of the state
  bool is_aborted_ = false;
};

}  // namespace fovea::serve
