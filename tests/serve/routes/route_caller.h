#pragma once

#include <chrono>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fovea/engine.h"
#include "serve/http/message.h"
#include "serve/http/router.h"
#include "serve/media/media_source.h"
#include "serve/service/service.h"
#include "serve/text/base64.h"
#include "support/json.h"
#include "support/temporary_directory.h"

namespace fovea::serve::test {

using fovea::test::Json;

using fovea::test::read_text;
using fovea::test::TemporaryDirectory;
using fovea::test::write_text;

inline const std::string kGoldenModel = FOVEA_TEST_GOLDEN_DIR "/qwen3_vl";

/// Bytes of an image of the golden model.
inline std::vector<std::uint8_t> image(const std::string& name) {
  std::ifstream file(kGoldenModel + "/images/" + name, std::ios::binary);
  if (!file) throw std::runtime_error("there is no image " + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::uint8_t> photo() { return image("photo_180x180.jpg"); }
inline std::vector<std::uint8_t> shapes() { return image("shapes_120x90.png"); }

/// As a client would put them into a request.
inline std::string base64_of(const std::vector<std::uint8_t>& bytes) {
  return to_base64(std::as_bytes(std::span(bytes)));
}
inline std::string data_url(const std::vector<std::uint8_t>& bytes) {
  return "data:image/png;base64," + base64_of(bytes);
}

/// A loaded service of one thread.
inline ServiceOptions small_service(const std::string& model = kGoldenModel) {
  ServiceOptions options;
  options.model = model;
  options.served_name = "m";
  options.engine.device = "cpu";
  options.engine.num_threads = 1;
  return options;
}

/// What an engine of its own makes of an image.
inline Embedding encoded(const std::vector<std::uint8_t>& bytes, RowDType dtype) {
  static Engine engine = Engine::load(kGoldenModel, {.device = "cpu", .num_threads = 1});
  const MediaItem item = image_bytes(bytes, "image");
  return engine.encode(std::span(&item, 1), {.dtype = dtype})[0];
}

/// A reply as a client has it.
struct Answer {
  int status = 0;
  std::string content_type;
  Headers headers;
  std::string body;

  [[nodiscard]] Json json() const { return Json::parse(body); }
  [[nodiscard]] std::string header(const std::string& name) const {
    const std::string* value = find_header(headers, name);
    return value == nullptr ? "" : *value;
  }
  /// The member `code` of an error.
  [[nodiscard]] std::string code() const { return json()["error"]["code"]; }
  [[nodiscard]] std::string param() const { return json()["error"]["param"]; }
};

/// Calls routes without a transport, and waits for their replies.
class RouteCaller {
 public:
  void add(std::vector<Route> routes) {
    for (Route& route : routes) router_.add(std::move(route));
  }

  /// @param target a path, which may have a query.
  Answer call(const std::string& method, const std::string& target, const std::string& body = {},
              Headers headers = {}) const {
    Request request;
    request.method = method;
    request.path = target.substr(0, target.find('?'));
    if (request.path.size() < target.size()) request.query = target.substr(request.path.size() + 1);
    request.headers = std::move(headers);
    request.id = "r1";
    request.arrival = Clock::now();
    request.deadline = Clock::time_point::max();
    request.body = std::make_shared<const BodyBytes>(body);
    std::promise<Reply> reply;
    auto exchange = std::make_shared<Exchange>(
        std::move(request), [&](Reply sent) { reply.set_value(std::move(sent)); });
    run(exchange);
    exchange.reset();
    return answer_of(reply.get_future().get());
  }

  Answer post(const std::string& path, const Json& body) const {
    return call("POST", path, fovea::test::to_text(body));
  }
  Answer get(const std::string& path) const { return call("GET", path); }

 private:
  void run(const std::shared_ptr<Exchange>& exchange) const {
    const Request& request = exchange->request();
    const auto found = router_.find(request.method, request.path);
    const auto* route = std::get_if<Router::Found>(&found);
    if (route == nullptr) throw std::runtime_error("no route for " + request.path);
    try {
      route->route->handler(exchange, route->arguments);
    } catch (...) {
      exchange->reply(error_reply(current_api_error(), request));
    }
  }

  static Answer answer_of(const Reply& reply) {
    Answer answer{reply.status, reply.content_type, reply.headers, {}};
    for (const BodyPart& part : reply.body) {
      answer.body.append(reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size());
    }
    return answer;
  }

  Router router_;
};

/// A loaded service and its routes; made once for all tests of a file.
struct Served {
  explicit Served(const ServiceOptions& options = small_service()) : service(options) {
    service.wait_loaded();
  }

  Service service;
  MediaSource media{MediaSourceOptions{}};
  RouteCaller routes;
};

}  // namespace fovea::serve::test
