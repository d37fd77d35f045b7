#include "serve/upstream/passed_headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fovea::serve {
namespace {

using testing::ElementsAre;

/// "name=value" of each.
std::vector<std::string> texts(const Headers& headers) {
  std::vector<std::string> texts;
  for (const Header& header : headers) texts.push_back(header.name + "=" + header.value);
  return texts;
}

RequestHead head_with(Headers headers) {
  RequestHead head;
  head.headers = std::move(headers);
  head.id = "r1";
  return head;
}

TEST(PassedRequestHeaders, LeavesOutThoseOfTheConnectionAndOfTheProxy) {
  const RequestHead head = head_with({{"Host", "proxy"},
                                      {"Connection", "keep-alive, x-Hop ,X-Two"},
                                      {"X-HOP", "1"},
                                      {"x-two", "2"},
                                      {"X-Three", "3"},
                                      {"Keep-Alive", "5"},
                                      {"TE", "trailers"},
                                      {"Upgrade", "h2c"},
                                      {"Transfer-Encoding", "chunked"},
                                      {"Content-Length", "7"},
                                      {"Expect", "100-continue"},
                                      {"X-Request-Id", "client's"},
                                      {"X-Request-Timeout-Ms", "9"},
                                      {"Content-Type", "application/json"}});
  EXPECT_THAT(texts(passed_request_headers(head, {})),
              ElementsAre("X-Three=3", "Content-Type=application/json", "X-Request-Id=r1",
                          "Via=1.1 fovea"));
}

TEST(PassedRequestHeaders, CallsABodyJsonWhereTheClientSaysNothing) {
  RequestHead head = head_with({});
  head.method = "POST";
  EXPECT_THAT(texts(passed_request_headers(head, {})),
              ElementsAre("Content-Type=application/json", "X-Request-Id=r1", "Via=1.1 fovea"));
  head.headers = {{"content-type", "application/json; charset=utf-8"}};
  EXPECT_EQ(texts(passed_request_headers(head, {}))[0],
            "content-type=application/json; charset=utf-8");
}

TEST(PassedRequestHeaders, SendsTheKeyThatIsMeantForTheModel) {
  const RequestHead head = head_with({{"authorization", "Bearer client"}, {"X-API-Key", "client"}});
  EXPECT_THAT(texts(passed_request_headers(head, {})),
              ElementsAre("authorization=Bearer client", "X-API-Key=client", "X-Request-Id=r1",
                          "Via=1.1 fovea"));
  EXPECT_THAT(texts(passed_request_headers(head, {.api_key = {}, .passes_client_keys = false})),
              ElementsAre("X-Request-Id=r1", "Via=1.1 fovea"));
  for (const bool passes : {false, true}) {
    EXPECT_THAT(
        texts(passed_request_headers(head, {.api_key = "own", .passes_client_keys = passes})),
        ElementsAre("Authorization=Bearer own", "X-Request-Id=r1", "Via=1.1 fovea"));
  }
}

TEST(PassedRequestHeaders, NeverSendsAnAdminKey) {
  const UpstreamKey key{.admin_keys = KeySet({"ours"})};
  for (const Header& ours : Headers{{"Authorization", "Bearer ours"},
                                    {"authorization", "BEARER  ours"},
                                    {"X-API-Key", "ours"},
                                    {"x-api-key", "ours"}}) {
    EXPECT_THAT(texts(passed_request_headers(head_with({ours}), key)),
                ElementsAre("X-Request-Id=r1", "Via=1.1 fovea"))
        << ours.name << ": " << ours.value;
  }
  const RequestHead head = head_with({{"Authorization", "Bearer theirs"}, {"X-API-Key", "ours"}});
  EXPECT_THAT(texts(passed_request_headers(head, key)),
              ElementsAre("Authorization=Bearer theirs", "X-Request-Id=r1", "Via=1.1 fovea"));
}

TEST(PassedAnswerHeaders, LeavesOutThoseOfTheConnectionAndOfTheTransport) {
  const Headers headers{{"Date", "now"},          {"server", "uvicorn"},
                        {"Content-Length", "7"},  {"Transfer-Encoding", "chunked"},
                        {"connection", "X-A"},    {"X-A", "1"},
                        {"X-Request-Id", "it's"}, {"Content-Type", "text/event-stream"},
                        {"Set-Cookie", "a"},      {"Set-Cookie", "b"}};
  EXPECT_THAT(texts(passed_answer_headers(headers)),
              ElementsAre("Content-Type=text/event-stream", "Set-Cookie=a", "Set-Cookie=b"));
}

}  // namespace
}  // namespace fovea::serve
