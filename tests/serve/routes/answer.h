#pragma once

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/api_error.h"
#include "serve/http/message.h"
#include "serve/http/router.h"
#include "support/json.h"

namespace fovea::serve::test {

using fovea::test::Json;

/// The bytes of a reply.
inline std::string text_of(const Reply& reply) {
  std::string text;
  for (const BodyPart& part : reply.body) {
    text.append(reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size());
  }
  return text;
}

inline Json json_of(const Reply& reply) { return Json::parse(text_of(reply)); }

/// A request to a path, which may have a query.
inline Request request_to(std::string method, const std::string& target, std::string body = {},
                          Headers headers = {}) {
  Request request;
  request.method = std::move(method);
  request.path = target.substr(0, target.find('?'));
  if (request.path.size() < target.size()) request.query = target.substr(request.path.size() + 1);
  request.headers = std::move(headers);
  request.id = "test-1";
  request.arrival = Clock::now();
  request.deadline = request.arrival + std::chrono::minutes(5);
  request.content_length = body.size();
  request.body = std::make_shared<const BodyBytes>(body);
  return request;
}

/// What the routes answer, without a transport: as a server calls handlers.
inline Reply answer(const Router& router, Request request) {
  const auto found = router.find(request.method, request.path);
  if (!std::holds_alternative<Router::Found>(found)) {
    return error_reply(ApiError(404, "route_not_found", "no such route"), request);
  }
  const auto& [route, arguments] = std::get<Router::Found>(found);
  const auto sent = std::make_shared<std::promise<Reply>>();
  std::future<Reply> reply = sent->get_future();
  {
    const auto exchange = std::make_shared<Exchange>(
        std::move(request), [sent](Reply sent_reply) { sent->set_value(std::move(sent_reply)); });
    try {
      route->handler(exchange, arguments);
    } catch (...) {
      exchange->fail();
    }
  }
  return reply.get();
}

}  // namespace fovea::serve::test
