#include "serve/text/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fovea::serve {
namespace {

TEST(ParseUrl, SplitsItsParts) {
  const Url url = parse_url("https://Example.ORG:8443/a/b.png?size=2#top").value();
  EXPECT_TRUE(url.is_https);
  EXPECT_EQ(url.kind, HostKind::kName);
  EXPECT_EQ(url.host, "example.org");
  EXPECT_EQ(url.port, 8443);
  EXPECT_EQ(url.target, "/a/b.png?size=2");
}

TEST(ParseUrl, KnowsThePortOfTheScheme) {
  EXPECT_EQ(parse_url("http://a.b/")->port, 80);
  EXPECT_EQ(parse_url("HTTPS://a.b/")->port, 443);
}

TEST(ParseUrl, GivesEveryUrlATarget) {
  EXPECT_EQ(parse_url("http://a.b")->target, "/");
  EXPECT_EQ(parse_url("http://a.b?x=1")->target, "/?x=1");
  EXPECT_EQ(parse_url("http://a.b#x")->target, "/");
}

TEST(ParseUrl, KnowsAddresses) {
  const Url v4 = parse_url("http://192.0.2.1/").value();
  EXPECT_EQ(v4.kind, HostKind::kIpv4);
  EXPECT_EQ(v4.host, "192.0.2.1");
  const Url v6 = parse_url("http://[2001:DB8:0::1]:81/x").value();
  EXPECT_EQ(v6.kind, HostKind::kIpv6);
  EXPECT_EQ(v6.host, "2001:db8::1");
  EXPECT_EQ(v6.port, 81);
}

TEST(ParseUrl, RefusesWhatOtherParsersReadAsAnotherHost) {
  for (const char* text : {"http://user@a.b/",
                           "http://user:word@a.b/",
                           "http://@a.b/",
                           "http://a.b\\@c.d/",
                           "http:\\\\a.b/",
                           "http://a.b /",
                           "http://a.b/\tx",
                           "http://a.b/\r\nHost: c",
                           "http://a%2eb/",
                           "http://a..b/",
                           "http://a.b./",
                           "http://.a.b/",
                           "http://-a.b/",
                           "http://a-.b/",
                           "http://",
                           "http:///x",
                           "http://?x",
                           "http:a.b",
                           "http:/a.b",
                           "//a.b/",
                           "a.b",
                           "",
                           "ftp://a.b/",
                           "http://m\xc3\xbcnchen.de/",
                           "http://a.b/%2",
                           "http://a.b/%zz",
                           "http://a,b/",
                           "http://a!b/",
                           "http://a.b/x\\y",
                           "http://a<b/"}) {
    EXPECT_EQ(parse_url(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_url(std::string_view("http://a.b/\0", 12)), std::nullopt);
}

TEST(ParseUrl, EncodesPathAndQueryAsBrowsersDo) {
  EXPECT_EQ(parse_url("http://a.b/\xe5\x9b\xbe.jpg")->target, "/%E5%9B%BE.jpg");
  EXPECT_EQ(parse_url("http://a.b/a b.jpg?q=\xc3\xbc#\xc3\xbc")->target, "/a%20b.jpg?q=%C3%BC");
  EXPECT_EQ(parse_url("http://a.b/<x>{y}|\"^`")->target, "/%3Cx%3E%7By%7D%7C%22%5E%60");
  EXPECT_EQ(parse_url("http://a.b/%41%20")->target, "/%41%20");
}

TEST(TargetProblem, SaysWhatIsMalformed) {
  EXPECT_EQ(target_problem("http://a.b/\xe5\x9b\xbe b.jpg#\\"), std::nullopt);
  EXPECT_THAT(target_problem("http://a.b/%2").value(), ::testing::HasSubstr("behind each %"));
  EXPECT_THAT(target_problem("http://a.b/\tx").value(), ::testing::HasSubstr("control"));
  EXPECT_THAT(target_problem("http://a.b/x\\y").value(), ::testing::HasSubstr("backslashes"));
  EXPECT_THAT(target_problem("http://a.b/" + std::string(kMaxUrlBytes, 'x')).value(),
              ::testing::HasSubstr("at most 8192 bytes"));
}

TEST(ParseUrl, RefusesAddressesInOtherForms) {
  for (const char* host :
       {"2130706433",  "0x7f000001", "127.1",  "0177.0.0.1", "127.0.0.01", "0",     "127.0.0.1.",
        "256.0.0.1",   "1.2.3.4.5",  "0x7f.1", "a.0x1",      "a.0x",       "a.1",   "[::1%25lo]",
        "[127.0.0.1]", "[::1",       "::1",    "[]",         "[::g]",      "[::1]x"}) {
    EXPECT_EQ(parse_url("http://" + std::string(host) + "/"), std::nullopt) << host;
  }
}

TEST(ParseUrl, RefusesPortsThatAreNone) {
  for (const char* port : {"", "0", "080", "65536", "99999999999", "8a", "-1", "+80", "80:80"}) {
    EXPECT_EQ(parse_url("http://a.b:" + std::string(port) + "/"), std::nullopt) << port;
  }
}

TEST(ParseUrl, RefusesEndlessText) {
  const std::string start = "http://a.b/";
  EXPECT_TRUE(parse_url(start + std::string(kMaxUrlBytes - start.size(), 'x')));
  EXPECT_FALSE(parse_url(start + std::string(kMaxUrlBytes - start.size() + 1, 'x')));
  EXPECT_FALSE(parse_url("http://" + std::string(64, 'x') + "/"));
  std::string name = "x";
  while (name.size() <= 253) name += ".x";
  EXPECT_FALSE(parse_url("http://" + name));
}

TEST(ParseUrl, TakesItsOwnText) {
  for (const char* text :
       {"http://a.b", "https://a.b:1/x?y", "http://[::1]/", "http://1.2.3.4/%41"}) {
    const Url url = parse_url(text).value();
    EXPECT_EQ(parse_url(url.text()), url);
  }
  EXPECT_EQ(parse_url("http://[::1]/x")->text(), "http://[::1]:80/x");
}

TEST(IsHttpUrl, LooksAtTheSchemeOnly) {
  EXPECT_TRUE(is_http_url("hTTp://"));
  EXPECT_TRUE(is_http_url("https://user@x"));
  EXPECT_FALSE(is_http_url("http:/x"));
  EXPECT_FALSE(is_http_url("httpx://x"));
  EXPECT_FALSE(is_http_url("aGVsbG8="));
}

TEST(PercentDecoded, ReplacesEscapes) {
  EXPECT_EQ(percent_decoded("a%2Fb%2f%00+"), std::string("a/b/\0+", 6));
  EXPECT_EQ(percent_decoded(""), "");
  EXPECT_EQ(percent_decoded("%61%C3%a9"), "a\xc3\xa9");
  for (const char* broken : {"%", "%4", "%4g", "%-1", "a%"})
    EXPECT_EQ(percent_decoded(broken), std::nullopt) << broken;
}

TEST(PercentEncoded, KeepsLettersDigitsAndFourMarks) {
  EXPECT_EQ(percent_encoded("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(percent_encoded("a/b c?\xc3\xa9%"), "a%2Fb%20c%3F%C3%A9%25");
}

}  // namespace
}  // namespace fovea::serve
