#include "serve/http/exchange.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace fovea::serve {
namespace {

Request request() {
  Request request;
  request.id = "id-1";
  request.body = std::make_shared<const BodyBytes>();
  return request;
}

TEST(Exchange, SendsTheFirstReplyOnly) {
  std::vector<int> sent;
  {
    Exchange exchange(request(), [&](Reply reply) { sent.push_back(reply.status); });
    exchange.reply({.status = 200});
    exchange.reply({.status = 201});
  }
  EXPECT_EQ(sent, std::vector{200});
}

TEST(Exchange, AnswersWhatWasDropped) {
  std::vector<int> sent;
  {
    const Exchange exchange(request(), [&](Reply reply) { sent.push_back(reply.status); });
  }
  EXPECT_EQ(sent, std::vector{500});
}

TEST(Exchange, SendsOneReplyOfManyThreads) {
  std::atomic<int> sent = 0;
  Exchange exchange(request(), [&](const Reply&) { ++sent; });
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { exchange.reply({.status = 200}); });
  threads.clear();
  EXPECT_EQ(sent, 1);
}

TEST(Exchange, StopsWorkForAClientThatLeft) {
  Exchange exchange(request(), [](const Reply&) {});
  const std::stop_token gone = exchange.gone();
  EXPECT_FALSE(gone.stop_requested());
  exchange.leave();
  EXPECT_TRUE(gone.stop_requested());
}

}  // namespace
}  // namespace fovea::serve
