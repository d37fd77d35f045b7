#include "serve/service/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "serve/routes/answer.h"
#include "serve/text/json.h"

namespace fovea::serve {
namespace {

using testing::HasSubstr;

const Route kWorkRoute{
    .method = "POST", .pattern = "/v1/encode", .kind = RouteKind::kWork, .handler = {}};
const Route kServiceRoute{
    .method = "GET", .pattern = "/health", .kind = RouteKind::kService, .handler = {}};
const Route kAdminRoute{
    .method = "POST", .pattern = "/v1/cache/reset", .kind = RouteKind::kAdmin, .handler = {}};

class AdmissionTest : public testing::Test {
 protected:
  AdmissionTest() : service_(options()) { service_.wait_loaded(); }

  static ServiceOptions options() {
    ServiceOptions options;
    options.model = FOVEA_TEST_GOLDEN_DIR "/qwen3_vl";
    options.engine.device = "cpu";
    options.engine.num_threads = 1;
    options.max_inflight_bytes = 1 << 20;
    return options;
  }

  static RequestHead head_with(const Headers& headers = {}) {
    RequestHead head;
    head.path = "/v1/encode";
    head.headers = headers;
    return head;
  }

  Service service_;
};

/// The status of a refusal; 0 for a permit.
int status_of(const std::variant<Reply, Permit>& answer) {
  return std::holds_alternative<Reply>(answer) ? std::get<Reply>(answer).status : 0;
}

/// "429 queue_full", or nothing.
std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const ApiError& error) {
    return std::to_string(error.status()) + " " + error.code();
  }
  return "";
}

TEST_F(AdmissionTest, LetsNoMoreRequestsInThanItSays) {
  Admission admission({.max_concurrent_requests = 2}, service_);
  const auto enter = [&] {
    return std::get<Permit>(admission.admit(head_with(), kWorkRoute)).enter();
  };
  std::shared_ptr<void> first = enter();
  const std::shared_ptr<void> second = enter();
  const auto third = admission.admit(head_with(), kWorkRoute);
  ASSERT_EQ(status_of(third), 429);
  EXPECT_NE(find_header(std::get<Reply>(third).headers, "Retry-After"), nullptr);
  EXPECT_EQ(status_of(admission.admit(head_with(), kServiceRoute)), 0);
  EXPECT_EQ(admission.in_flight(), 2);
  first.reset();
  EXPECT_EQ(status_of(admission.admit(head_with(), kWorkRoute)), 0);
  EXPECT_EQ(admission.refused().queue_full, 1);
}

TEST_F(AdmissionTest, HoldsNoPlaceForABodyThatIsNotThere) {
  Admission admission({.max_concurrent_requests = 1}, service_);
  const auto slow = admission.admit(head_with(), kWorkRoute);
  const auto quick = admission.admit(head_with(), kWorkRoute);
  const std::shared_ptr<void> place = std::get<Permit>(quick).enter();
  EXPECT_EQ(refusal([&] { (void)std::get<Permit>(slow).enter(); }), "429 queue_full");
  EXPECT_EQ(admission.refused().queue_full, 1);
}

TEST_F(AdmissionTest, GivesABodyRoomAsItComes) {
  Admission admission({}, service_);
  {
    const auto answer = admission.admit(head_with(), kWorkRoute);
    const Permit& permit = std::get<Permit>(answer);
    EXPECT_EQ(service_.memory().used(), 0);
    permit.grow(1000);
    permit.grow(1 << 19);
    EXPECT_EQ(service_.memory().used(), 1 << 19);
    EXPECT_EQ(refusal([&] { permit.grow((1 << 20) + 1); }), "429 queue_full");
    EXPECT_EQ(refusal([&] { permit.grow(~std::uint64_t{0}); }), "429 queue_full");
    EXPECT_EQ(service_.memory().used(), 1 << 19);
  }
  EXPECT_EQ(service_.memory().used(), 0);
  EXPECT_EQ(admission.refused().no_memory, 2);
}

TEST_F(AdmissionTest, RefusesABodyThatAClientMayNeverHold) {
  Admission admission({}, service_);
  RequestHead head = head_with();
  head.content_length = 1 << 19;
  EXPECT_EQ(status_of(admission.admit(head, kWorkRoute)), 0);
  head.content_length = (1 << 19) + 1;
  const auto answer = admission.admit(head, kWorkRoute);
  ASSERT_EQ(status_of(answer), 413);
  EXPECT_THAT(test::text_of(std::get<Reply>(answer)), HasSubstr("--max-inflight-bytes"));
}

TEST_F(AdmissionTest, LeavesRoomForBodiesOfOtherClients) {
  Admission admission({}, service_);
  const auto head_of = [](const std::shared_ptr<Client>& client) {
    RequestHead head = head_with();
    head.client = client;
    return head;
  };
  const auto greedy = head_of(std::make_shared<Client>());
  std::vector<std::variant<Reply, Permit>> held;
  std::string refused;
  while (refused.empty()) {
    held.push_back(admission.admit(greedy, kWorkRoute));
    refused = refusal([&] { std::get<Permit>(held.back()).grow(64 << 10); });
  }
  EXPECT_EQ(refused, "429 queue_full");
  const auto other = admission.admit(head_of(std::make_shared<Client>()), kWorkRoute);
  EXPECT_EQ(refusal([&] { std::get<Permit>(other).grow(256 << 10); }), "");
}

TEST_F(AdmissionTest, AsksForAKeyWhereThereAreKeys) {
  Admission admission({.api_keys = {"one", "two"}}, service_);
  EXPECT_EQ(status_of(admission.admit(head_with(), kWorkRoute)), 401);
  EXPECT_EQ(status_of(admission.admit(head_with({{"Authorization", "Bearer three"}}), kWorkRoute)),
            401);
  EXPECT_EQ(status_of(admission.admit(head_with({{"Authorization", "Basic two"}}), kWorkRoute)),
            401);
  EXPECT_EQ(status_of(admission.admit(head_with({{"authorization", "Bearer two"}}), kWorkRoute)),
            0);
  EXPECT_EQ(status_of(admission.admit(head_with({{"Authorization", "bearer  two"}}), kWorkRoute)),
            0);
  EXPECT_EQ(status_of(admission.admit(head_with({{"X-API-Key", "one"}}), kWorkRoute)), 0);
  EXPECT_EQ(status_of(admission.admit(head_with(), kServiceRoute)), 0);
  EXPECT_EQ(admission.refused().no_key, 3);

  Admission strict({.api_keys = {"one"}, .auth_all = true}, service_);
  EXPECT_EQ(status_of(strict.admit(head_with(), kServiceRoute)), 401);
}

TEST_F(AdmissionTest, OpensAdminRoutesToAdminsOnly) {
  Admission closed({.api_keys = {"user"}}, service_);
  EXPECT_EQ(status_of(closed.admit(head_with(), kAdminRoute)), 403);
  EXPECT_EQ(status_of(closed.admit(head_with({{"X-API-Key", "user"}}), kAdminRoute)), 403);
  const Header local{"Host", "localhost:8000"};
  Admission keyed({.admin_keys = {"admin"}, .open_admin = OpenAdmin::kLoopback}, service_);
  EXPECT_EQ(status_of(keyed.admit(head_with({local}), kAdminRoute)), 403);
  EXPECT_EQ(status_of(keyed.admit(head_with({{"X-API-Key", "admin"}}), kAdminRoute)), 0);
  Admission open({.open_admin = OpenAdmin::kLoopback}, service_);
  EXPECT_EQ(status_of(open.admit(head_with({local}), kAdminRoute)), 0);
}

TEST_F(AdmissionTest, AsksForTheAdminKeyBehindAProxy) {
  const Header local{"Host", "localhost"};
  const Header passed_on{"X-Forwarded-For", "1.2.3.4"};
  Admission open({.open_admin = OpenAdmin::kLoopback}, service_);
  const auto refused = open.admit(head_with({local, passed_on}), kAdminRoute);
  ASSERT_EQ(status_of(refused), 403);
  EXPECT_EQ(std::get<Reply>(refused).error_code, "admin_required");
  Admission keyed({.admin_keys = {"admin"}, .open_admin = OpenAdmin::kLoopback}, service_);
  EXPECT_EQ(
      status_of(keyed.admit(head_with({local, passed_on, {"X-API-Key", "admin"}}), kAdminRoute)),
      0);
  EXPECT_EQ(open.refused().no_key, 1);
}

TEST_F(AdmissionTest, AnswersNoPageOfAnotherHostOnAdminRoutes) {
  const Headers foreign{
      {"Host", "localhost"}, {"Origin", "http://evil.example"}, {"X-API-Key", "admin"}};
  Admission keyed({.admin_keys = {"admin"}}, service_);
  const auto refused = keyed.admit(head_with(foreign), kAdminRoute);
  ASSERT_EQ(status_of(refused), 403);
  EXPECT_EQ(std::get<Reply>(refused).error_code, "foreign_origin");
  EXPECT_EQ(status_of(keyed.admit(head_with(foreign), kWorkRoute)), 0) << "changes nothing";
}

TEST_F(AdmissionTest, TakesOtherKeysFromNowOn) {
  Admission admission({.api_keys = {"old"}}, service_);
  admission.set_keys({"new"}, {});
  EXPECT_EQ(status_of(admission.admit(head_with({{"X-API-Key", "old"}}), kWorkRoute)), 401);
  EXPECT_EQ(status_of(admission.admit(head_with({{"X-API-Key", "new"}}), kWorkRoute)), 0);
  EXPECT_THROW(admission.set_keys({""}, {}), Error);
}

TEST_F(AdmissionTest, RefusesWorkWhileTheServiceTakesNone) {
  Admission admission({}, service_);
  service_.drain();
  const auto answer = admission.admit(head_with(), kWorkRoute);
  ASSERT_EQ(status_of(answer), 503);
  EXPECT_EQ(std::get<Reply>(answer).error_code, "draining");
  EXPECT_EQ(status_of(admission.admit(head_with(), kServiceRoute)), 0);
}

}  // namespace
}  // namespace fovea::serve
