#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "raw_client.h"
#include "serve/api_error.h"
#include "serve/http/reply_stream.h"
#include "serve/http/server.h"

namespace fovea::test {

/// Lets tests wait for what other threads do, a minute at most.
class Watched {
 public:
  template <typename Change>
  void change(Change&& change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_all();
  }
  template <typename Condition>
  bool wait_for(Condition&& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), condition);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

/// Threads that run tasks in the order they come.
class Tasks {
 public:
  explicit Tasks(int threads = 2) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  }
  ~Tasks() {
    watched_.change([&] { ends_ = true; });
  }
  void add(std::function<void()> task) {
    watched_.change([&] { tasks_.push_back(std::move(task)); });
  }

 private:
  void run() {
    for (;;) {
      std::function<void()> task;
      while (!watched_.wait_for([&] {
        if (!tasks_.empty()) {
          task = std::move(tasks_.front());
          tasks_.pop_front();
        }
        return task || ends_;
      })) {
      }
      if (!task) return;
      task();
    }
  }

  Watched watched_;
  std::deque<std::function<void()>> tasks_;
  bool ends_ = false;
  std::vector<std::jthread> threads_;
};

/// What an observer was told.
struct Observed {
  std::string path;
  std::string id;
  bool has_route = false;
  int status = 0;
  std::string error_code;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
};

inline serve::HttpOptions loopback() {
  serve::HttpOptions options;
  options.port = 0;
  options.server_name = "fovea/test";
  return options;
}

/// A server with a few routes:
///   GET  /health  "ok"
///   POST /echo    the body
///   POST /hold    no reply before release()
///   POST /block   keeps a thread that computes until release()
///   GET  /probe   "alive", on the thread of the connection
///   GET  /refuse  throws ApiError(422, "decode_failed")
///   GET  /drop    forgets the request
///   GET  /big     `big_parts` parts of 1 MiB
///   GET  /stream  what wait_stream() returns; with ?LENGTH, its length; with ?10ms, its time
class TestServer {
 public:
  explicit TestServer(serve::HttpOptions options = loopback(), serve::Gate gate = {}) {
    add_routes();
    if (!gate) gate = [](const auto&, const auto&) { return serve::Permit{}; };
    const bool is_unix = !options.unix_socket.empty();
    path_ = options.unix_socket;
    serve::Server::Parts parts{
        .router = &router_,
        .gate = std::move(gate),
        .observer = [this](const serve::Served& served) { observe(served); },
        .run_task = [this](std::function<void()> task) { tasks_.add(std::move(task)); }};
    if (options.tls && !is_unix) parts.tls = serve::read_tls(*options.tls);
    server.emplace(std::move(options), std::move(parts));
    server->start();
    if (!is_unix) path_.clear();
  }
  ~TestServer() {
    server.reset();
    release();
  }

  /// @param from as in RawClient::tcp.
  [[nodiscard]] RawClient connect(std::uint8_t from = 1) const {
    return path_.empty() ? RawClient::tcp(server->port(), from) : RawClient::unix_socket(path_);
  }
  /// The reply to a request on a connection of its own.
  RawReply ask(std::string_view request) const { return connect().ask(request); }

  /// Answers everything that is held with "held".
  void release() {
    std::vector<std::shared_ptr<serve::Exchange>> held;
    watched_.change([&] {
      held.swap(held_);
      is_released_ = true;
    });
    for (const auto& exchange : held) exchange->reply(serve::text_reply(200, "text/plain", "held"));
  }
  bool wait_held(std::size_t count) {
    return watched_.wait_for([&] { return held_.size() >= count; });
  }
  /// Until clients of that many held requests have left.
  bool wait_gone(std::size_t count) {
    return watched_.wait_for([&] { return gone_ >= count; });
  }
  /// The body of the last request for /stream, once it is there.
  std::shared_ptr<serve::ReplyStream> wait_stream() {
    std::shared_ptr<serve::ReplyStream> stream;
    watched_.wait_for([&] {
      stream = std::exchange(stream_, nullptr);
      return stream != nullptr;
    });
    return stream;
  }
  /// Until the readers of so many streams want no more, and there was room again so often.
  bool wait_told(std::size_t closed, std::size_t room = 0) {
    return watched_.wait_for([&] { return closed_ >= closed && room_ >= room; });
  }
  std::vector<Observed> wait_observed(std::size_t count) {
    std::vector<Observed> copy;
    watched_.wait_for([&] {
      copy = observed_;
      return observed_.size() >= count;
    });
    return copy;
  }
  /// Until there is no connection.
  [[nodiscard]] bool wait_idle() const {
    for (int i = 0; i < 6000; ++i) {
      if (server->is_idle()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  std::optional<serve::Server> server;
  int big_parts = 64;

 private:
  using Exchange = std::shared_ptr<serve::Exchange>;

  void add(std::string method, std::string pattern, std::function<void(const Exchange&)> handler,
           bool is_instant = false) {
    router_.add({.method = std::move(method),
                 .pattern = std::move(pattern),
                 .kind = serve::RouteKind::kService,
                 .handler = [handler = std::move(handler)](
                                const Exchange& exchange,
                                const serve::PathArguments&) { handler(exchange); },
                 .is_instant = is_instant});
  }
  void add_routes() {
    using serve::text_reply;
    add("GET", "/health", [](const Exchange& x) { x->reply(text_reply(200, "text/plain", "ok")); });
    add("POST", "/echo", [](const Exchange& x) {
      x->reply(text_reply(200, "application/octet-stream", std::string(x->request().text())));
    });
    add("POST", "/hold", [this](const Exchange& x) { hold(x); });
    add("POST", "/block", [this](const Exchange& x) {
      hold(x);
      watched_.wait_for([&] { return is_released_; });
    });
    add(
        "GET", "/probe",
        [](const Exchange& x) { x->reply(text_reply(200, "text/plain", "alive")); },
        /*is_instant=*/true);
    add("GET", "/refuse", [](const Exchange&) {
      throw serve::ApiError(422, "decode_failed", "no picture", "items[0]");
    });
    add("GET", "/drop", [](const Exchange&) {});
    add("GET", "/stream", [this](const Exchange& x) { stream(x); });
    add("GET", "/big", [this](const Exchange& x) {
      serve::Reply reply = text_reply(200, "application/octet-stream", "");
      for (int i = 0; i < big_parts; ++i) {
        reply.body.push_back(
            serve::body_part(std::string(1 << 20, static_cast<char>('a' + i % 26))));
      }
      x->reply(std::move(reply));
    });
  }
  void stream(const Exchange& exchange) {
    const auto stream = std::make_shared<serve::ReplyStream>(
        [this](bool more) { watched_.change([&] { ++(more ? room_ : closed_); }); });
    serve::Reply reply{.status = 200, .content_type = "text/plain"};
    reply.stream = serve::ReplyStream::reading_end(stream);
    const std::string& query = exchange->request().query;
    if (query.ends_with("ms")) {
      reply.stream_until = serve::Clock::now() + std::chrono::milliseconds(std::stoi(query));
    } else if (!query.empty()) {
      reply.stream_length = std::stoul(query);
    }
    exchange->reply(std::move(reply));
    watched_.change([&] { stream_ = stream; });
  }
  void hold(const Exchange& exchange) {
    // Counts at once if the client has left already.
    auto stop = std::make_unique<Stop>(exchange->gone(), Count{this});
    watched_.change([&] {
      held_.push_back(exchange);
      stops_.push_back(std::move(stop));
    });
  }
  void observe(const serve::Served& served) {
    watched_.change([&] {
      observed_.push_back({.path = served.head.path,
                           .id = served.head.id,
                           .has_route = served.route != nullptr,
                           .status = served.status,
                           .error_code = std::string(served.error_code),
                           .bytes_in = served.bytes_in,
                           .bytes_out = served.bytes_out});
    });
  }

  struct Count {
    TestServer* owner;
    void operator()() const {
      owner->watched_.change([&] { ++owner->gone_; });
    }
  };
  using Stop = std::stop_callback<Count>;

  std::string path_;
  serve::Router router_;
  Watched watched_;
  std::vector<Exchange> held_;
  std::vector<std::unique_ptr<Stop>> stops_;
  std::size_t gone_ = 0;
  std::shared_ptr<serve::ReplyStream> stream_;
  std::size_t closed_ = 0;
  std::size_t room_ = 0;
  bool is_released_ = false;
  std::vector<Observed> observed_;
  Tasks tasks_;
};

/// A request with a body.
inline std::string post(std::string_view path, std::string_view body,
                        std::string_view headers = "") {
  std::string request = "POST ";
  request.append(path).append(" HTTP/1.1\r\nHost: h\r\n").append(headers);
  request += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  return request.append(body);
}

inline std::string get(std::string_view path, std::string_view headers = "") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: h\r\n" + std::string(headers) + "\r\n";
}

/// "status code" of a reply that closes the connection.
inline std::string last_words(RawClient client, const std::string& request) {
  const RawReply reply = client.ask(request);
  const std::size_t code = reply.body.find("\"code\":\"");
  if (code == std::string::npos) return std::to_string(reply.status) + " without a code";
  if (reply.header("Connection") != "close") return "keeps the connection";
  client.shut_sending();
  if (!client.is_closed()) return "sends more";
  const std::size_t begin = code + 8;
  return std::to_string(reply.status) + " " +
         reply.body.substr(begin, reply.body.find('"', begin) - begin);
}

}  // namespace fovea::test
