#include "serve/routes/admin/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "serve/text/base64.h"
#include "support/sha256.h"

namespace fovea::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The pages are tested alike.
class Page : public testing::TestWithParam<const char*> {};

Reply ask(const Headers& headers = {}) {
  const std::vector<Route> routes = page_routes();
  const auto found = std::ranges::find(routes, Page::GetParam(), &Route::pattern);
  if (found == routes.end()) throw std::runtime_error("no such page");
  const Route& route = *found;
  EXPECT_EQ(route.method, "GET");
  Request request;
  request.headers = headers;
  Reply answer;
  const auto exchange = std::make_shared<Exchange>(std::move(request),
                                                   [&](Reply reply) { answer = std::move(reply); });
  route.handler(exchange, {});
  return answer;
}

std::string text_of(const Reply& reply) {
  std::string text;
  for (const BodyPart& part : reply.body) {
    text.append(reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size());
  }
  return text;
}

std::string header(const Reply& reply, const char* name) {
  const std::string* value = find_header(reply.headers, name);
  return value == nullptr ? "" : *value;
}

/// How a Content-Security-Policy names an element of the page.
std::string source_of(const std::string& page, const std::string& element) {
  const std::size_t begin = page.find("<" + element + ">") + element.size() + 2;
  const std::string content = page.substr(begin, page.find("</" + element + ">") - begin);
  const std::string hex =
      test::sha256_hex({reinterpret_cast<const std::uint8_t*>(content.data()), content.size()});
  std::vector<std::byte> digest;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    digest.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return element + "-src 'sha256-" + to_base64(digest) + "'";
}

TEST_P(Page, IsWholeHtml) {
  const Reply reply = ask();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.content_type, "text/html; charset=utf-8");
  EXPECT_THAT(text_of(reply), testing::StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(text_of(reply), testing::EndsWith("</html>\n"));
}

TEST_P(Page, HasNoPartsFromElsewhere) {
  const std::string page = text_of(ask());
  for (const char* text : {"http:", "https:", "//www", " src=", "<link", "@import", "url(",
                           " style=", " onclick=", "innerHTML", "eval("}) {
    EXPECT_THAT(page, Not(HasSubstr(text)));
  }
}

TEST_P(Page, AllowsItsOwnScriptAndStyleOnly) {
  const Reply reply = ask();
  const std::string policy = header(reply, "Content-Security-Policy");
  EXPECT_THAT(policy, testing::StartsWith("default-src 'none';"));
  EXPECT_THAT(policy, HasSubstr(source_of(text_of(reply), "script")));
  EXPECT_THAT(policy, HasSubstr(source_of(text_of(reply), "style")));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_EQ(header(reply, "X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(header(reply, "Referrer-Policy"), "no-referrer");
}

TEST_P(Page, IsSentOnceToThoseWhoHaveIt) {
  const std::string tag = header(ask(), "ETag");
  for (const std::string& known : {tag, "\"other\", W/" + tag}) {
    const Reply reply = ask({{"if-none-match", known}});
    EXPECT_EQ(reply.status, 304);
    EXPECT_TRUE(reply.body.empty());
    EXPECT_EQ(header(reply, "ETag"), tag);
  }
  EXPECT_EQ(ask({{"If-None-Match", "\"other\""}}).status, 200);
}

TEST_P(Page, SharesItsStyle) { EXPECT_THAT(text_of(ask()), HasSubstr("color-scheme: light dark")); }

INSTANTIATE_TEST_SUITE_P(All, Page, testing::Values("/", "/docs"));

}  // namespace
}  // namespace fovea::serve
