#include "serve/service/admin_access.h"

#include <gtest/gtest.h>

namespace fovea::serve {
namespace {

RequestHead admin_head_with(const Headers& headers) {
  RequestHead head;
  head.headers = headers;
  return head;
}

TEST(NamesLoopback, TakesNamesThatNobodyElseCanHave) {
  for (const char* host : {"localhost", "LocalHost:8000", "127.0.0.1", "127.0.0.1:8000",
                           "127.9.8.7", "[::1]", "[::1]:8000"}) {
    EXPECT_TRUE(names_loopback(host)) << host;
  }
  for (const char* host : {"", "evil.example", "evil.example:8000", "127.0.0.1.evil.example",
                           "localhost.evil.example", "127.evil.example", "128.0.0.1", "0.0.0.0",
                           "[::2]", "[::ffff:127.0.0.1]", "10.0.0.1:127"}) {
    EXPECT_FALSE(names_loopback(host)) << host;
  }
}

TEST(OpenAdminOf, IsNobodyWhereOthersComeIn) {
  for (const char* host : {"127.0.0.1", "localhost", "::1", "[::1]"}) {
    EXPECT_EQ(open_admin({.host = host}), OpenAdmin::kLoopback) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "[::]", "192.168.0.1", "127.evil.example", ""}) {
    EXPECT_EQ(open_admin({.host = host}), OpenAdmin::kNobody) << host;
  }
  EXPECT_EQ(open_admin({.unix_socket = "/run/s"}), OpenAdmin::kOwnUser);
}

TEST(ForeignOrigin, IsAnyThatIsNotTheHost) {
  const Header host{"Host", "127.0.0.1:8000"};
  EXPECT_FALSE(has_foreign_origin({host}));
  EXPECT_FALSE(has_foreign_origin({host, {"Origin", "http://127.0.0.1:8000"}}));
  EXPECT_FALSE(has_foreign_origin({{"Host", "a.example"}, {"Origin", "https://A.example"}}));
  for (const char* origin : {"http://evil.example", "http://127.0.0.1:8001", "http://127.0.0.1",
                             "null", "", "http://127.0.0.1:8000.evil.example"}) {
    EXPECT_TRUE(has_foreign_origin({host, {"oRigin", origin}})) << origin;
  }
  EXPECT_TRUE(has_foreign_origin({{"Origin", "http://127.0.0.1:8000"}}));
  EXPECT_TRUE(has_foreign_origin(
      {host, {"Origin", "http://127.0.0.1:8000"}, {"Origin", "http://evil.example"}}));
}

TEST(Objection, IsMadeToWhatAProxyHasPassedOn) {
  const Header host{"Host", "localhost"};
  EXPECT_EQ(objection_to(admin_head_with({host}), OpenAdmin::kLoopback), "");
  for (const char* name :
       {"Forwarded", "X-Forwarded-For", "x-forwarded-proto", "X-Real-IP", "Via"}) {
    EXPECT_NE(objection_to(admin_head_with({host, {name, "1.2.3.4"}}), OpenAdmin::kLoopback), "")
        << name;
    RequestHead own = admin_head_with({{name, "1.2.3.4"}});
    own.is_own_user = true;
    EXPECT_NE(objection_to(own, OpenAdmin::kOwnUser), "") << name;
  }
}

TEST(Objection, IsMadeToNamesThatLeadHereByADetour) {
  EXPECT_NE(objection_to(admin_head_with({{"Host", "evil.example"}}), OpenAdmin::kLoopback), "");
  EXPECT_NE(objection_to(admin_head_with({}), OpenAdmin::kLoopback), "");
}

TEST(Objection, IsMadeToOtherUsers) {
  RequestHead head = admin_head_with({{"Host", "x"}});
  EXPECT_NE(objection_to(head, OpenAdmin::kOwnUser), "");
  head.is_own_user = true;
  EXPECT_EQ(objection_to(head, OpenAdmin::kOwnUser), "");
  EXPECT_NE(objection_to(head, OpenAdmin::kNobody), "");
}

}  // namespace
}  // namespace fovea::serve
