#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "serve/http/reply_stream.h"
#include "serve/upstream/forwarder.h"
#include "support/local_server.h"

/// Language models, a forwarder in front of them, and requests, for tests of what is passed on.
namespace fovea::serve::proxied {

inline constexpr const char* kStreamHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// A chunk of less than 16 bytes.
inline std::string chunk(const std::string& text) {
  return std::string(1, "0123456789abcdef"[text.size()]) + "\r\n" + text + "\r\n";
}

/// A language model that is healthy and answers all else as it is told.
class Model {
 public:
  using Behaviour = std::function<void(int socket)>;
  explicit Model(Behaviour behaviour, const char* address = "127.0.0.1", std::uint16_t port = 0)
      : behaviour_(std::move(behaviour)),
        server_(
            [this](int socket, const std::string& head) {
              if (head.starts_with("GET /health ")) {
                return fovea::test::send_text(socket, fovea::test::http_reply(health, ""));
              }
              ++asked;
              read_body(socket, head);
              behaviour_(socket);
            },
            address, port) {}

  [[nodiscard]] std::string url() const { return server_.url(""); }
  [[nodiscard]] std::uint16_t port() const { return server_.port(); }
  std::vector<std::string> heads() { return server_.heads(); }

  std::atomic<int> asked = 0;
  std::atomic<int> health = 200;

 private:
  static void read_body(int socket, const std::string& head) {
    const std::size_t at = head.find("Content-Length: ");
    std::size_t left = at == std::string::npos ? 0 : std::stoul(head.substr(at + 16));
    for (char byte = 0; left > 0 && recv(socket, &byte, 1, 0) == 1;) --left;
  }

  Behaviour behaviour_;
  fovea::test::LocalServer server_;
};

inline Model::Behaviour answering(const std::string& bytes) {
  return [bytes](int socket) { fovea::test::send_text(socket, bytes); };
}
inline const Model::Behaviour kCloses = answering("");
inline const Model::Behaviour kHangs = [](int socket) { fovea::test::wait_for_close(socket); };
inline const Model::Behaviour kAnswers =
    answering(fovea::test::http_reply(200, "text", "X-A: 1\r\n"));

inline UpstreamOptions options_of(std::initializer_list<const Model*> models) {
  UpstreamOptions options;
  for (const Model* model : models) options.urls.push_back(model->url());
  options.health.interval = std::chrono::milliseconds(10);
  return options;
}

/// A forwarder that has found all its models up.
class Proxy {
 public:
  explicit Proxy(std::initializer_list<const Model*> models) : Proxy(options_of(models)) {}
  explicit Proxy(const UpstreamOptions& options) : Proxy(options, options.urls.size()) {}
  Proxy(const UpstreamOptions& options, std::size_t up) : forwarder(options) {
    wait_for_metric("fovea_llm_up", static_cast<double>(up));
  }
  /// Until all samples of a metric together are that.
  void wait_for_metric(const std::string& name, double value) {
    for (int i = 0; i < 6000 && metric(name) != value; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(metric(name), value) << name;
  }
  double metric(const std::string& name) const {
    MetricsText text({});
    forwarder.write(text);
    double sum = 0;
    for (std::size_t at = 0; (at = text.text().find("\n" + name, at)) != std::string::npos; ++at) {
      const std::size_t begin = text.text().find(' ', at);
      sum += std::stod(text.text().substr(begin));
    }
    return sum;
  }

  Forwarder forwarder;
};

/// A request on its way, and its reply.
class Sent {
 public:
  explicit Sent(Proxy& proxy, std::string key = {},
                std::chrono::milliseconds time = std::chrono::minutes(1)) {
    Request request;
    request.method = "POST";
    request.id = "r1";
    request.deadline = Clock::now() + time;
    request.body = std::make_shared<const BodyBytes>("body");
    const auto exchange = std::make_shared<Exchange>(
        std::move(request), [this](Reply reply) { reply_.set_value(std::move(reply)); });
    exchange_ = exchange;
    ForwardedCall call{.target = "/v1/chat/completions?a=b", .key = std::move(key)};
    call.body.push_back(body_part(std::string("body")));
    call.reply_headers = {{"X-Fovea-Rows", "7"}};
    proxy.forwarder.forward(exchange, std::move(call));
  }

  void leave() {
    if (const auto exchange = exchange_.lock()) exchange->leave();
  }
  Reply& reply() {
    if (!got_) got_ = future_.get();
    return *got_;
  }
  std::string header(std::string_view name) {
    const std::string* const value = find_header(reply().headers, name);
    return value == nullptr ? "" : *value;
  }
  /// The body, and how it has ended.
  std::string body() {
    std::string text;
    for (const BodyPart& part : reply().body) {
      text.append(reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size());
    }
    if (!reply().stream) return text;
    for (;;) {
      const ReplyStream::Piece piece = reply().stream->take();
      text += piece.bytes;
      if (piece.has_ended) return piece.is_whole ? text : text + " (broken off)";
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  std::string code() {
    const std::string text = body();
    const std::size_t begin = text.find("\"code\":\"") + 8;
    return text.substr(begin, text.find('"', begin) - begin);
  }

 private:
  std::promise<Reply> reply_;
  std::future<Reply> future_ = reply_.get_future();
  std::optional<Reply> got_;
  std::weak_ptr<Exchange> exchange_;
};

}  // namespace fovea::serve::proxied
