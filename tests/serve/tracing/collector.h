#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "support/json.h"
#include "support/local_server.h"

namespace fovea::serve::test {

using fovea::test::Json;

/// A collector of OTLP that keeps what it gets.
class Collector {
 public:
  /// @param status of its answers; asked for each request.
  explicit Collector(std::function<int()> status = [] { return 200; })
      : status_(std::move(status)),
        server_([this](int socket, const std::string& head) { take(socket, head); }) {}

  [[nodiscard]] std::string url() const { return server_.url("/v1/traces"); }
  [[nodiscard]] std::vector<std::string> heads() { return server_.heads(); }

  /// All spans that it has taken, once there are so many.
  std::vector<Json> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return spans_.size() >= count; });
    return spans_;
  }
  std::vector<Json> spans() { return wait_for(0); }

 private:
  void take(int socket, const std::string& head) {
    const std::string name = "Content-Length: ";
    std::string body(std::stoul(head.substr(head.find(name) + name.size())), ' ');
    for (std::size_t got = 0; got < body.size();) {
      const ssize_t size = recv(socket, body.data() + got, body.size() - got, 0);
      if (size <= 0) return;
      got += static_cast<std::size_t>(size);
    }
    const int status = status_();
    if (status == 200) add(Json::parse(body));
    fovea::test::send_text(socket, fovea::test::http_reply(status, "{}"));
  }

  void add(const Json& request) {
    const std::lock_guard lock(mutex_);
    for (const Json& resource : request["resourceSpans"]) {
      for (const Json& scope : resource["scopeSpans"]) {
        for (const Json& span : scope["spans"]) spans_.push_back(span);
      }
    }
    changed_.notify_all();
  }

  std::function<int()> status_;
  std::mutex mutex_;  // guards spans_
  std::condition_variable changed_;
  std::vector<Json> spans_;
  fovea::test::LocalServer server_;  // the last: its threads use the others
};

}  // namespace fovea::serve::test
