#include "serve/http/address_rules.h"

#include <gtest/gtest.h>

namespace fovea::serve {
namespace {

TEST(IsPublic, KnowsBlocksAndTheirNeighbours) {
  for (const char* text : {"0.0.0.0",
                           "0.1.2.3",
                           "10.0.0.1",
                           "100.64.0.1",
                           "100.127.255.255",
                           "127.0.0.1",
                           "127.255.255.255",
                           "169.254.169.254",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.0.0.8",
                           "192.0.2.1",
                           "192.88.99.1",
                           "192.168.1.1",
                           "198.18.0.1",
                           "198.19.255.255",
                           "198.51.100.1",
                           "203.0.113.1",
                           "224.0.0.1",
                           "239.255.255.255",
                           "240.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "::ffff:8.8.8.8",
                           "::ffff:169.254.169.254",
                           "::127.0.0.1",
                           "64:ff9b::808:808",
                           "64:ff9b:1::1",
                           "100::1",
                           "2001::1",
                           "2001:db8::1",
                           "2001:1ff::1",
                           "2002:7f00:1::",
                           "2002:808:808::1",
                           "3fff:fff::1",
                           "4000::1",
                           "fc00::1",
                           "fd00::1",
                           "fe80::1",
                           "febf::1",
                           "fec0::1",
                           "ff02::1"}) {
    EXPECT_FALSE(is_public(parse_address(text).value())) << text;
  }
  for (const char* text :
       {"1.1.1.1",     "8.8.8.8",         "9.255.255.255", "11.0.0.0",    "100.63.255.255",
        "100.128.0.0", "126.255.255.255", "128.0.0.1",     "169.253.1.1", "172.15.0.1",
        "172.32.0.1",  "192.0.1.1",       "192.167.1.1",   "192.169.1.1", "198.17.0.1",
        "198.20.0.1",  "223.255.255.255", "2001:200::1",   "2001:db9::1", "2606:4700:4700::1111",
        "2003::1",     "3ffe::1",         "3fff:1000::1"}) {
    EXPECT_TRUE(is_public(parse_address(text).value())) << text;
  }
}

TEST(Address, ReadsBackItsText) {
  for (const char* text : {"127.0.0.1", "::1", "2001:db8::ff00:42:8329"}) {
    EXPECT_EQ(parse_address(text)->text(), text);
  }
  EXPECT_NE(parse_address("0.0.0.0"), parse_address("::"));
  for (const char* text : {"", "example.org", "127.1", "::g", "1.2.3.4.5"}) {
    EXPECT_EQ(parse_address(text), std::nullopt) << text;
  }
}

TEST(AddressOf, TakesSocketsOfIpOnly) {
  sockaddr_storage socket{};
  auto& generic = reinterpret_cast<sockaddr&>(socket);
  generic.sa_family = AF_UNIX;
  EXPECT_EQ(address_of(generic), std::nullopt);
  generic.sa_family = AF_INET;
  EXPECT_EQ(address_of(generic)->text(), "0.0.0.0");
  generic.sa_family = AF_INET6;
  EXPECT_EQ(address_of(generic)->text(), "::");
}

TEST(IsListed, TakesHostsAndTheirSubdomains) {
  const std::vector<std::string> list{"example.org", "*.cdn.net", "192.0.2.1"};
  for (const char* host : {"example.org", "a.cdn.net", "a.b.cdn.net", "192.0.2.1"}) {
    EXPECT_TRUE(is_listed(host, list)) << host;
  }
  for (const char* host :
       {"a.example.org", "cdn.net", "acdn.net", "example.org.net", "192.0.2.2", "notexample.org"}) {
    EXPECT_FALSE(is_listed(host, list)) << host;
  }
}

TEST(IsDomain, WantsAHostOrAStarAndAName) {
  for (const char* text : {"example.org", "*.example.org", "localhost", "192.0.2.1", "::1"}) {
    EXPECT_TRUE(is_domain(text)) << text;
  }
  for (const char* text : {"", "*", "*.", "*example.org", "a.*.org", "https://example.org",
                           "example.org/", "Example.org", "example.org:80", "*.1", "a..b"}) {
    EXPECT_FALSE(is_domain(text)) << text;
  }
}

}  // namespace
}  // namespace fovea::serve
