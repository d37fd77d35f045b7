#include "serve/http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "core/interrupt.h"
#include "test_server.h"

namespace fovea::serve {
namespace {

using test::get;
using test::Observed;
using test::post;
using test::RawClient;
using test::RawReply;
using test::TestServer;
using testing::HasSubstr;

TEST(Server, Answers) {
  TestServer tested;
  const RawReply reply = tested.ask(get("/health"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "ok");
  EXPECT_EQ(reply.header("Server"), "fovea/test");
  EXPECT_EQ(reply.header("Content-Type"), "text/plain");
  EXPECT_EQ(reply.header("Connection"), "keep-alive");
  EXPECT_THAT(reply.header("Date"), testing::EndsWith(" GMT"));
  EXPECT_THAT(reply.header("X-Request-Id"), testing::MatchesRegex("fov-[0-9a-f]{32}"));
  EXPECT_EQ(tested.server->address(), "http://127.0.0.1:" + std::to_string(tested.server->port()));
}

TEST(Server, AnswersPagesOfOtherOriginsIfToldTo) {
  serve::HttpOptions options = test::loopback();
  options.cors = Cors({.origins = {"https://a.test"}});
  // The gate lets nobody in, and is not asked.
  const Gate closed = [](const RequestHead& /*head*/, const Route& /*route*/) {
    return text_reply(401, "text/plain", "no key");
  };
  TestServer tested(options, closed);
  const RawReply asked = tested.ask(
      "OPTIONS /echo HTTP/1.1\r\nHost: h\r\nOrigin: https://a.test\r\n"
      "Access-Control-Request-Method: POST\r\n\r\n");
  EXPECT_EQ(asked.status, 200);
  EXPECT_EQ(asked.header("Access-Control-Allow-Origin"), "https://a.test");
  const RawReply refused =
      tested.ask("GET /health HTTP/1.1\r\nHost: h\r\nOrigin: https://a.test\r\n\r\n");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.header("Access-Control-Allow-Origin"), "https://a.test");
  const RawReply other =
      tested.ask("GET /health HTTP/1.1\r\nHost: h\r\nOrigin: https://b.test\r\n\r\n");
  EXPECT_EQ(other.header("Access-Control-Allow-Origin"), "");
}

TEST(Server, KeepsConnections) {
  TestServer tested;
  RawClient client = tested.connect();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(client.ask(get("/health")).body, "ok");
    EXPECT_EQ(client.ask(post("/echo", "body " + std::to_string(i))).body,
              "body " + std::to_string(i));
  }
  EXPECT_EQ(tested.server->stats().accepted, 1);
}

TEST(Server, AnswersPipelinedRequestsInOrder) {
  TestServer tested;
  RawClient client = tested.connect();
  client.send(post("/echo", "one") + get("/health") + post("/echo", "three"));
  EXPECT_EQ(client.receive_reply().body, "one");
  EXPECT_EQ(client.receive_reply().body, "ok");
  EXPECT_EQ(client.receive_reply().body, "three");
}

TEST(Server, TakesPipelinedBytesForNoDeparture) {
  TestServer tested;
  RawClient client = tested.connect();
  client.send(post("/hold", "x"));
  ASSERT_TRUE(tested.wait_held(1));
  client.send(get("/health") + get("/health"));
  tested.release();
  EXPECT_EQ(client.receive_reply().body, "held");
  EXPECT_EQ(client.receive_reply().body, "ok");
  EXPECT_EQ(client.receive_reply().body, "ok");
}

TEST(Server, ReadsRequestsByteByByte) {
  TestServer tested;
  RawClient client = tested.connect();
  for (const char byte : post("/echo", "slowly") +
                             "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                             "3;x=y\r\nchu\r\n4\r\nnked\r\n0\r\nTrailer: t\r\n\r\n") {
    ASSERT_TRUE(client.send({&byte, 1}));
  }
  EXPECT_EQ(client.receive_reply().body, "slowly");
  EXPECT_EQ(client.receive_reply().body, "chunked");
}

TEST(Server, SkipsEmptyLinesBetweenRequests) {
  TestServer tested;
  RawClient client = tested.connect();
  EXPECT_EQ(client.ask("\r\n\r\n" + get("/health")).body, "ok");
  EXPECT_EQ(client.ask("\r\n" + get("/health")).body, "ok");
}

TEST(Server, CarriesLargeBodies) {
  TestServer tested;
  std::string body(20 << 20, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 7 + i / 1000);
  RawClient client = tested.connect();
  std::jthread sender([&] { client.send(post("/echo", body)); });
  EXPECT_TRUE(client.receive_reply().body == body);
  sender.join();
  const std::vector<Observed> observed = tested.wait_observed(1);
  EXPECT_EQ(observed.at(0).bytes_in, body.size());
  EXPECT_EQ(observed.at(0).bytes_out, body.size());
}

TEST(Server, SendsPartsOneAfterTheOther) {
  TestServer tested;
  const RawReply reply = tested.ask(get("/big"));
  ASSERT_EQ(reply.body.size(), std::size_t{64} << 20);
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(reply.body[i << 20], static_cast<char>('a' + i % 26));
    EXPECT_EQ(reply.body[(i << 20) + (1 << 20) - 1], static_cast<char>('a' + i % 26));
  }
}

TEST(Server, AnswersHeadWithTheLengthAlone) {
  TestServer tested;
  RawClient client = tested.connect();
  client.send("HEAD /health HTTP/1.1\r\nHost: h\r\n\r\n" + get("/health"));
  const RawReply reply = client.receive_reply(false);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("Content-Length"), "2");
  EXPECT_EQ(client.receive_reply().body, "ok");
}

TEST(Server, TakesTheIdOfTheClient) {
  TestServer tested;
  EXPECT_EQ(tested.ask(get("/health", "x-request-id: abc-1\r\n")).header("X-Request-Id"), "abc-1");
  EXPECT_EQ(tested.wait_observed(1).at(0).id, "abc-1");
  for (const std::string& bad : {std::string(129, 'a'), std::string("a b"), std::string()}) {
    EXPECT_THAT(tested.ask(get("/health", "X-Request-Id: " + bad + "\r\n")).header("X-Request-Id"),
                testing::StartsWith("fov-"));
  }
}

TEST(Server, FollowsTheClientsWishToClose) {
  TestServer tested;
  RawClient client = tested.connect();
  EXPECT_EQ(client.ask(get("/health", "Connection: x, Close\r\n")).header("Connection"), "close");
  EXPECT_TRUE(client.is_closed());
}

TEST(Server, KeepsConnectionsOfHttp10OnWish) {
  TestServer tested;
  RawClient client = tested.connect();
  EXPECT_EQ(client.ask("GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").body, "ok");
  EXPECT_EQ(client.ask("GET /health HTTP/1.0\r\n\r\n").header("Connection"), "close");
  EXPECT_TRUE(client.is_closed());
}

TEST(Server, NamesWhatPathsAndMethodsThereAre) {
  TestServer tested;
  const RawReply none = tested.ask(get("/nothing"));
  EXPECT_EQ(none.status, 404);
  EXPECT_THAT(none.body, HasSubstr(R"("code":"route_not_found")"));
  EXPECT_THAT(none.body, HasSubstr("no route /nothing; /openapi.json lists all"));
  const RawReply other = tested.ask("OPTIONS /health HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(other.status, 405);
  EXPECT_EQ(other.header("Allow"), "GET, HEAD");
  EXPECT_THAT(other.body, HasSubstr(R"("code":"method_not_allowed")"));
  const std::vector<Observed> observed = tested.wait_observed(2);
  EXPECT_FALSE(observed.at(0).has_route);
  EXPECT_EQ(observed.at(0).error_code, "route_not_found");
}

TEST(Server, RefusesBodiesInACoding) {
  TestServer tested;
  const RawReply coded = tested.ask(post("/echo", "\x1f\x8b", "Content-Encoding: gzip\r\n"));
  EXPECT_EQ(coded.status, 415);
  EXPECT_THAT(coded.body, HasSubstr("Content-Encoding: expected a body without coding, got gzip"));
  EXPECT_EQ(tested.ask(post("/echo", "x", "Content-Encoding: Identity\r\n")).status, 200);
}

TEST(Server, ServesBelowTheRootPath) {
  HttpOptions options = test::loopback();
  options.root_path = "/api/";
  TestServer tested(options);
  EXPECT_EQ(tested.ask(get("/api/health?x=1")).body, "ok");
  EXPECT_EQ(tested.ask(get("/api/%68ealth")).body, "ok");
  EXPECT_EQ(tested.ask(get("/health")).status, 404);
  EXPECT_EQ(tested.ask(get("/apihealth")).status, 404);
  EXPECT_EQ(tested.ask(get("/api")).status, 404);
}

TEST(Server, AnswersWhatHandlersThrowOrForget) {
  TestServer tested;
  RawClient client = tested.connect();
  const RawReply thrown = client.ask(get("/refuse"));
  EXPECT_EQ(thrown.status, 422);
  EXPECT_THAT(thrown.body, HasSubstr(R"("param":"items[0]","code":"decode_failed")"));
  EXPECT_EQ(client.ask(get("/drop")).status, 500);
  EXPECT_EQ(client.ask(get("/health")).status, 200);
  const std::vector<Observed> observed = tested.wait_observed(3);
  EXPECT_EQ(observed.at(0).error_code, "decode_failed");
  EXPECT_EQ(observed.at(1).error_code, "internal");
  EXPECT_EQ(observed.at(2).error_code, "");
}

TEST(Server, NoticesClientsThatLeave) {
  TestServer tested;
  RawClient closes = tested.connect();
  closes.send(post("/hold", "1"));
  RawClient resets = tested.connect();
  resets.send(post("/hold", "2"));
  RawClient shuts = tested.connect();
  shuts.send(post("/hold", "3"));
  ASSERT_TRUE(tested.wait_held(3));
  EXPECT_EQ(tested.server->stats().requests_in_progress, 3);
  closes.close();
  resets.reset();
  shuts.shut_sending();
  EXPECT_TRUE(tested.wait_gone(3));
  for (const Observed& observed : tested.wait_observed(3)) EXPECT_EQ(observed.status, 499);
  EXPECT_TRUE(tested.wait_idle());
  EXPECT_EQ(tested.server->stats().requests_in_progress, 0);
}

TEST(Server, OutlivesRepliesToClientsThatLeft) {
  TestServer tested;
  RawClient client = tested.connect();
  client.send(post("/hold", "1"));
  ASSERT_TRUE(tested.wait_held(1));
  client.reset();
  ASSERT_TRUE(tested.wait_gone(1));
  tested.release();
  EXPECT_EQ(tested.ask(get("/health")).status, 200);
}

/// Whatever looks at the interrupt of its thread, such as the reader of JSON, ends with its
/// request.
TEST(Server, EndsTheWorkOfAHandlerWithItsRequest) {
  Router router;
  test::Watched watched;
  int begun = 0;
  std::vector<ErrorCode> ends;
  const auto work = [&](const std::shared_ptr<Exchange>&, const PathArguments&) {
    watched.change([&] { ++begun; });
    try {
      const Clock::time_point most = Clock::now() + std::chrono::minutes(1);
      while (Clock::now() < most) check_interrupt();
    } catch (const Error& error) {
      watched.change([&] { ends.push_back(error.code()); });
      throw;
    }
  };
  router.add({.method = "POST", .pattern = "/work", .kind = RouteKind::kWork, .handler = work});
  test::Tasks tasks;
  Server server(test::loopback(),
                {.router = &router,
                 .gate = [](const auto&, const auto&) { return Permit{}; },
                 .observer = {},
                 .run_task = [&](std::function<void()> task) { tasks.add(std::move(task)); }});
  server.start();
  RawClient leaves = RawClient::tcp(server.port());
  leaves.send(post("/work", "x"));
  ASSERT_TRUE(watched.wait_for([&] { return begun == 1; }));
  leaves.reset();
  ASSERT_TRUE(watched.wait_for([&] { return ends.size() == 1; }));
  EXPECT_EQ(ends[0], ErrorCode::kCancelled);
  RawClient late = RawClient::tcp(server.port());
  EXPECT_EQ(late.ask(post("/work", "x", "X-Request-Timeout-Ms: 50\r\n")).status, 504);
  EXPECT_TRUE(watched.wait_for([&] { return ends.size() == 2; }));
}

TEST(Server, GivesHandlersTheRequest) {
  Router router;
  std::promise<RequestHead> seen;
  router.add(
      {.method = "PUT",
       .pattern = "/a/{name}",
       .kind = RouteKind::kWork,
       .handler = [&](const std::shared_ptr<Exchange>& exchange, const PathArguments& names) {
         EXPECT_EQ(names, PathArguments{"x y"});
         EXPECT_EQ(exchange->request().text(), "body");
         seen.set_value(exchange->request());
         exchange->reply({.status = 204, .content_type = {}, .headers = {}, .body = {}});
       }});
  Server server(test::loopback(), {.router = &router,
                                   .gate = [](const auto&, const auto&) { return Permit{}; },
                                   .observer = {},
                                   .run_task = [](const auto& task) { task(); }});
  server.start();
  RawClient client = RawClient::tcp(server.port());
  const RawReply reply = client.ask(
      "PUT /a/x%20y?q=%31 HTTP/1.1\r\nHost: h\r\nX-A:  v \r\nX-Request-Timeout-Ms: 500\r\n"
      "Content-Length: 4\r\n\r\nbody");
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.header("Content-Length"), "");
  const RequestHead head = seen.get_future().get();
  EXPECT_EQ(head.method, "PUT");
  EXPECT_EQ(head.path, "/a/x y");
  EXPECT_EQ(head.query, "q=%31");
  EXPECT_EQ(*find_header(head.headers, "x-a"), "v");
  EXPECT_EQ(head.peer, "127.0.0.1");
  EXPECT_EQ(head.content_length, 4u);
  EXPECT_EQ(head.deadline - head.arrival, std::chrono::milliseconds(500));
}

}  // namespace
}  // namespace fovea::serve
