#include "serve/routes/encode_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/routes/route_caller.h"
#include "serve/rows/item_json.h"

namespace fovea::serve {
namespace {

using test::Answer;
using ::testing::HasSubstr;

/// A route that encodes the bodies of requests as images, and answers with their rows' number.
class EncodeCallTest : public ::testing::Test {
 protected:
  /// @param change of the call, before it is made.
  Answer post(const std::string& body, const std::function<void(EncodeCall&)>& change = {},
              const std::function<void(Exchange&)>& meanwhile = {}) {
    test::RouteCaller routes;
    const auto handler = [&](const std::shared_ptr<Exchange>& exchange, const PathArguments&) {
      EncodeCall call;
      call.media.resize(1);
      call.media[0].bytes = *exchange->request().body;
      call.media[0].owner = exchange->request().body;
      call.media[0].param = "body";
      call.make_reply = [](const JobReply& reply) {
        return text_reply(200, "text/plain", std::to_string(count_rows(reply.items)));
      };
      if (change) change(call);
      if (meanwhile) meanwhile(*exchange);
      encode_and_reply({served_.service, served_.media, {.max_items = 2}}, exchange,
                       std::move(call));
    };
    routes.add({{.method = "POST", .pattern = "/", .kind = RouteKind::kWork, .handler = handler}});
    return routes.call("POST", "/", body);
  }
  static std::string photo() {
    const std::vector<std::uint8_t> bytes = test::photo();
    return {bytes.begin(), bytes.end()};
  }

  test::Served served_;
};

TEST_F(EncodeCallTest, AnswersWithWhatBecameOfTheItems) {
  const Answer answer = post(photo());
  const std::int64_t rows = test::encoded(test::photo(), RowDType::kFloat32).rows;
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, std::to_string(rows));
  EXPECT_EQ(answer.header("X-Fovea-Rows"), std::to_string(rows));
  EXPECT_EQ(answer.header("X-Fovea-Cache"), "hit=0,join=0,miss=0,bypass=1") << "there is none";
  EXPECT_EQ(answer.header("X-Fovea-Graph"), "hit=1,partial=0,miss=0");
}

TEST_F(EncodeCallTest, ShowsItemsAndTheirPlansBeforeTheyAreEncoded) {
  std::size_t seen = 0;
  std::optional<std::int64_t> rows;
  post(photo(), [&](EncodeCall& call) {
    call.look = [&](std::span<const PlannedItem> items) {
      seen = items[0].media().content().size();
      rows = items[0].rows();
    };
  });
  EXPECT_EQ(seen, photo().size());
  EXPECT_EQ(rows, test::encoded(test::photo(), RowDType::kFloat32).rows);
}

TEST_F(EncodeCallTest, AnswersWithWhatTheRouteThrows) {
  const Answer answer = post(photo(), [](EncodeCall& call) {
    call.make_reply = [](const JobReply&) -> Reply {
      throw ApiError(507, "ec_storage_full", "there is no room");
    };
  });
  EXPECT_EQ(answer.status, 507);
  EXPECT_EQ(answer.code(), "ec_storage_full");
}

TEST_F(EncodeCallTest, NamesTheItemThatFails) {
  const Answer broken = post("no image");
  EXPECT_EQ(broken.status, 422);
  EXPECT_EQ(broken.param(), "body");
  EXPECT_EQ(post("").param(), "body");
}

TEST_F(EncodeCallTest, TakesNoMoreItemsThanAllowed) {
  const Answer answer =
      post(photo(), [](EncodeCall& call) { call.media.resize(3, call.media[0]); });
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("at most 2"));
}

TEST_F(EncodeCallTest, EndsWhenTheClientLeaves) {
  EXPECT_EQ(post(photo(), {}, [](Exchange& exchange) { exchange.leave(); }).code(),
            "client_closed_request");
}

TEST_F(EncodeCallTest, EndsAtTheDeadlineOfTheClient) {
  const Answer answer =
      post(photo(), [](EncodeCall& call) { call.deadline = Clock::time_point{}; });
  EXPECT_EQ(answer.status, 504);
  EXPECT_EQ(answer.code(), "deadline_exceeded");
}

TEST_F(EncodeCallTest, TakesNothingWhileTheServerEnds) {
  served_.service.drain();
  const Answer answer = post(photo());
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.code(), "draining");
  EXPECT_NE(answer.header("Retry-After"), "");
}

}  // namespace
}  // namespace fovea::serve
