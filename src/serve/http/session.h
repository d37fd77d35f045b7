#pragma once

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <string>

#include "serve/http/connections.h"
#include "serve/http/input.h"
#include "serve/http/listening_socket.h"
#include "serve/http/mailbox.h"
#include "serve/http/message.h"
#include "serve/http/reply_writer.h"
#include "serve/http/stream.h"
#include "serve/http/turn.h"

namespace fovea::serve {

class Session;

/// What a session is about.
enum class SessionState : std::uint8_t {
  kIdle,     ///< there is no request: it has just come, or had its reply
  kTalking,  ///< bytes of a request come, or those of its reply go
  kWorking,  ///< a handler has the request
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
  /// @param client whom accept_from() has told of; its descriptor is in `socket` by now.
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
  void change_to(SessionState state);
  [[nodiscard]] Awaitable<void> run();
  [[nodiscard]] Awaitable<bool> wait_for_request();
  [[nodiscard]] Awaitable<void> serve(Turn& turn);
  /// Does a step; what it throws becomes the reply.
  [[nodiscard]] Awaitable<void> attempt(Turn& turn, Awaitable<void> step);
  [[nodiscard]] Awaitable<void> read_head(Turn& turn);
  [[nodiscard]] Awaitable<void> admit_body(Turn& turn);
  [[nodiscard]] Awaitable<void> work(Turn& turn);
  [[nodiscard]] Awaitable<std::optional<Reply>> wait_for_reply(Mailbox& mailbox,
                                                               Clock::time_point limit);
  [[nodiscard]] Awaitable<void> send(Turn& turn);
  [[nodiscard]] Awaitable<bool> drop_body(std::uint64_t size);
  [[nodiscard]] Awaitable<void> close(const Turn& turn);

  [[nodiscard]] Turn begin_turn();
  void find_route(Turn& turn) const;
  void ask_gate(Turn& turn) const;
  [[nodiscard]] std::weak_ptr<Exchange> hand_over(Turn& turn, std::shared_ptr<Mailbox> mailbox);
  [[nodiscard]] ReplyPace pace() const;
  /// Whether another request may follow once this one has its reply.
  [[nodiscard]] bool may_go_on(const Turn& turn) const;
  void observe(const Turn& turn) const;

  /// Reads until the client leaves, its bytes fill the input or stop_watching().
  [[nodiscard]] Awaitable<void> watch();
  void start_watching();
  [[nodiscard]] Awaitable<void> stop_watching();
  [[nodiscard]] Awaitable<IoResult> fill_input();

  SessionGroup& group_;
  const HttpOptions& options_;
  std::shared_ptr<ConnectionPlace> place_;
  Accepted client_;
  Stream stream_;
  Input input_;
  std::shared_ptr<Event> changed_;  ///< the reply is there, or something below
  SessionState state_ = SessionState::kIdle;
  Clock::time_point since_;              ///< of the state
  std::list<Session*>::iterator entry_;  ///< of this in the list of the state
  bool has_served_ = false;              ///< a request
  bool has_left_ = false;                ///< the client, while a handler worked
  bool is_aborted_ = false;
  bool is_watching_ = false;  ///< watch() runs
  bool watch_ends_ = false;   ///< watch() is to end
};

}  // namespace fovea::serve
