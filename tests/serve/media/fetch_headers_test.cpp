#include "serve/media/fetch_headers.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::serve {
namespace {

using test::expect_error;

Url parsed(const std::string& text) { return parse_url(text).value(); }

/// "Name=value;..." in their order.
std::string shown(const Headers& headers) {
  std::string text;
  for (const Header& header : headers) text += header.name + "=" + header.value + ";";
  return text;
}

class HeadersFile : public ::testing::Test {
 protected:
  std::string write(const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_.path() + "/headers.json";
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }
  void expect_refused(ErrorCode code, const std::string& message, const std::string& path) {
    expect_error(code, path + message, [&] { FetchHeaders().read(path); });
  }
  const test::TemporaryDirectory folder_;
};

TEST(FetchHeaders, OfAllHostsAreThoseOfEveryUrl) {
  FetchHeaders headers;
  headers.add("User-Agent: me/1.0", "--media-header");
  headers.add("accept:image/*", "--media-header");
  headers.add("Accept:  image/png", "--media-header");
  EXPECT_EQ(shown(headers.of(parsed("http://a.test/x"))), "User-Agent=me/1.0;Accept=image/png;");
}

TEST(FetchHeaders, RefusesWhatIsNoHeaderOrNotForAllHosts) {
  const auto refused = [](const char* line, const char* message) {
    expect_error(ErrorCode::kInvalidArgument, message,
                 [&] { FetchHeaders().add(line, "--media-header"); });
  };
  refused("no colon", "--media-header: expected a header as 'Name: value', got no name");
  refused(": value", "--media-header: expected a header as 'Name: value', got no name");
  refused("A B: c", "--media-header: expected a header as 'Name: value', got no name");
  refused("Host: b.test", "--media-header: the header Host is set by the transport");
  refused("X: a\r\nHost: b", "--media-header: the header X has a value that is empty, has control");
  refused("X:", "--media-header: the header X has a value that is empty");
  refused("authorization: Bearer secret", "--media-header: the header authorization is a secret");
  refused("Cookie: a=b", "belongs into --media-headers-file");
}

TEST_F(HeadersFile, GivesEachOriginItsOwn) {
  FetchHeaders headers;
  headers.read(write(R"({"*": {"Accept": "image/*", "User-Agent": "all"},
                         "https://a.test": {"Authorization": "Bearer one", "user-agent": "a"},
                         "http://b.test:8080": {"Cookie": "c=d"}})"));
  const auto of = [&](const char* url) { return shown(headers.of(parsed(url))); };
  EXPECT_EQ(of("https://a.test/x"), "Accept=image/*;Authorization=Bearer one;user-agent=a;");
  EXPECT_EQ(of("https://A.TEST:443"), "Accept=image/*;Authorization=Bearer one;user-agent=a;");
  for (const char* other : {"http://a.test/", "https://a.test:8443/", "https://b.a.test/",
                            "https://a.test.other.test/", "http://b.test/"})
    EXPECT_EQ(of(other), "Accept=image/*;User-Agent=all;") << other;
  EXPECT_EQ(of("http://b.test:8080/"), "Accept=image/*;User-Agent=all;Cookie=c=d;");
}

TEST_F(HeadersFile, KeepsTheKeyOfAProxyForIt) {
  FetchHeaders headers;
  headers.read(write(R"({"http://p.test:3128": {"Proxy-Authorization": "Basic x", "A": "b"}})"));
  EXPECT_EQ(shown(headers.of_proxy(parsed("http://p.test:3128"))), "Proxy-Authorization=Basic x;");
  EXPECT_EQ(shown(headers.of(parsed("http://p.test:3128"))), "A=b;");
  EXPECT_EQ(shown(headers.of_proxy(parsed("http://p.test:3129"))), "");
}

TEST_F(HeadersFile, IsForItsOwnerAndGroupAlone) {
  for (const mode_t mode : {0400U, 0600U, 0640U, 0440U})
    EXPECT_NO_THROW(FetchHeaders().read(write("{}", mode))) << mode;
  for (const mode_t mode : {0644U, 0604U, 0660U, 0602U, 0601U})
    expect_refused(ErrorCode::kInvalidArgument, ": expected a file that others cannot read",
                   write("{}", mode));
}

TEST_F(HeadersFile, SaysWhatIsWrongWithoutAValue) {
  const auto refused = [&](const char* text, const char* message) {
    expect_refused(ErrorCode::kInvalidArgument, message, write(text));
  };
  refused(R"({"a.test": {}})", ": expected \"*\" or an origin such as https://images.example.org");
  refused(R"({"https://a.test/": {}})", ": expected \"*\" or an origin");
  refused(R"({"https://a.test/x": {}})", ": expected \"*\" or an origin");
  refused(R"({"*": {"Authorization": "s3cret"}})", ": the header Authorization is a secret of one");
  refused(R"({"https://a.test": {"X": 3}})", ": https://a.test.X: expected a text");
  refused(R"({"https://a.test": {"Range": "x"}})", ": the header Range is set by the transport");
  try {
    FetchHeaders().read(write(R"({"https://a.test": {"Authorization": "s3c\nret"}})"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("s3c"), std::string::npos) << error.what();
  }
  expect_refused(ErrorCode::kCorruptData, "", write("{"));
  expect_error(ErrorCode::kNotFound, "", [&] { FetchHeaders().read(folder_.path() + "/none"); });
}

}  // namespace
}  // namespace fovea::serve
