#include "serve/http/head_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "serve/api_error.h"

namespace fovea::serve {
namespace {

using std::chrono::milliseconds;

RequestHead begun() {
  RequestHead head;
  head.id = "ours";
  head.arrival = Clock::time_point(milliseconds(1'000));
  head.deadline = head.arrival + milliseconds(5'000);
  return head;
}

struct Parsed {
  RequestHead head = begun();
  Framing framing;
};

Parsed parse(std::string_view headers, std::string_view line = "POST /a HTTP/1.1\r\nHost: h\r\n") {
  Parsed parsed;
  const std::string text = std::string(line).append(headers).append("\r\n");
  parsed.framing = parse_head(text, 8, parsed.head);
  return parsed;
}

/// "status code" of the refusal, or "taken".
std::string verdict(std::string_view headers,
                    std::string_view line = "POST /a HTTP/1.1\r\nHost: h\r\n") {
  try {
    (void)parse(headers, line);
  } catch (const ApiError& error) {
    return std::to_string(error.status()) + " " + error.code();
  }
  return "taken";
}

constexpr std::string_view kMalformed = "400 invalid_request";

TEST(ParseHead, ReadsLineAndHeaders) {
  const Parsed parsed =
      parse("A: 1\r\nB:\t two words \t\r\nEmpty:\r\n", "GET /p%20q?x=%20 HTTP/1.1\r\nHost: h\r\n");
  EXPECT_EQ(parsed.head.method, "GET");
  EXPECT_EQ(parsed.head.path, "/p q");
  EXPECT_EQ(parsed.head.query, "x=%20");
  EXPECT_EQ(*find_header(parsed.head.headers, "a"), "1");
  EXPECT_EQ(*find_header(parsed.head.headers, "b"), "two words");
  EXPECT_EQ(*find_header(parsed.head.headers, "empty"), "");
  EXPECT_EQ(parsed.head.id, "ours");
  EXPECT_EQ(parsed.head.content_length, 0u);
  EXPECT_FALSE(parsed.framing.has_body());
  EXPECT_TRUE(parsed.framing.keep_alive);
}

TEST(ParseHead, RefusesLinesOfNoRequest) {
  for (const std::string_view line :
       {"GET /a\r\nHost: h\r\n", "GET  /a HTTP/1.1\r\nHost: h\r\n",
        "GET /a b HTTP/1.1\r\nHost: h\r\n", " GET /a HTTP/1.1\r\nHost: h\r\n",
        "GET /a HTTP/1.1 \r\nHost: h\r\n", "GET a HTTP/1.1\r\nHost: h\r\n",
        "GET * HTTP/1.1\r\nHost: h\r\n", "G@T /a HTTP/1.1\r\nHost: h\r\n",
        "/a HTTP/1.1\r\nHost: h\r\n", "GET /a http/1.1\r\nHost: h\r\n",
        "GET /a HTTP/11\r\nHost: h\r\n", "GET\t/a HTTP/1.1\r\nHost: h\r\n"}) {
    EXPECT_EQ(verdict("", line), kMalformed) << line;
  }
}

TEST(ParseHead, NamesOtherVersions) {
  for (const std::string_view line :
       {"GET / HTTP/2.0\r\n", "GET / HTTP/0.9\r\n", "GET / HTTP/1.2\r\n"}) {
    EXPECT_EQ(verdict("", line), "505 http_version_not_supported") << line;
  }
}

TEST(ParseHead, RefusesMalformedHeaders) {
  for (const std::string_view headers :
       {"A\r\n", ": v\r\n", "A : v\r\n", " A: v\r\n", "A: v\r\n folded\r\n", "A: v\r\n\tfolded\r\n",
        "A\tB: v\r\n", "A(: v\r\n"}) {
    EXPECT_EQ(verdict(headers), kMalformed) << headers;
  }
}

TEST(ParseHead, LimitsTheNumberOfHeaders) {
  EXPECT_EQ(verdict("A: 1\r\nA: 2\r\nA: 3\r\nA: 4\r\nA: 5\r\nA: 6\r\nA: 7\r\n"), "taken");
  EXPECT_EQ(verdict("A: 1\r\nA: 2\r\nA: 3\r\nA: 4\r\nA: 5\r\nA: 6\r\nA: 7\r\nA: 8\r\n"),
            "431 headers_too_large");
}

TEST(ParseHead, WantsOneHost) {
  EXPECT_EQ(verdict("", "GET / HTTP/1.1\r\n"), kMalformed);
  EXPECT_EQ(verdict("host: other\r\n"), kMalformed);
  EXPECT_EQ(verdict("", "GET / HTTP/1.0\r\n"), "taken");
}

TEST(ParseHead, ReadsLengths) {
  EXPECT_EQ(parse("Content-Length: 12\r\n").framing.content_length, 12u);
  EXPECT_EQ(parse("Content-Length: 12\r\n").head.content_length, 12u);
  EXPECT_EQ(parse("Content-Length: 12\r\ncontent-length: 012\r\n").framing.content_length, 12u);
  EXPECT_EQ(parse("Content-Length: 99999999999999999999999\r\n").framing.content_length,
            UINT64_MAX);
  for (const std::string_view bad :
       {"", "-1", "+1", "1 2", "1, 1", "0x1", "1.0", "one", "\xd9\xa1"}) {
    EXPECT_EQ(verdict("Content-Length: " + std::string(bad) + "\r\n"), kMalformed) << bad;
  }
  EXPECT_EQ(verdict("Content-Length: 1\r\nContent-Length: 2\r\n"), kMalformed);
}

TEST(ParseHead, ReadsTransferCodings) {
  const Parsed parsed = parse("Transfer-Encoding: Chunked\r\n");
  EXPECT_TRUE(parsed.framing.is_chunked);
  EXPECT_TRUE(parsed.framing.has_body());
  EXPECT_EQ(parsed.head.content_length, std::nullopt);
  for (const std::string_view bad : {"gzip", "gzip, chunked", "chunked, chunked", "identity", "",
                                     "chunked\r\nTransfer-Encoding: chunked", "xchunked"}) {
    EXPECT_EQ(verdict("Transfer-Encoding: " + std::string(bad) + "\r\n"),
              "501 transfer_coding_not_supported")
        << bad;
  }
}

TEST(ParseHead, RefusesALengthBesideATransferCoding) {
  EXPECT_EQ(verdict("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), kMalformed);
  EXPECT_EQ(verdict("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n"), kMalformed);
  EXPECT_EQ(verdict("Transfer-Encoding: chunked\r\n", "POST / HTTP/1.0\r\n"), kMalformed);
}

TEST(ParseHead, ReadsConnectionOptions) {
  const std::string_view old = "GET / HTTP/1.0\r\n";
  EXPECT_TRUE(parse("").framing.keep_alive);
  EXPECT_FALSE(parse("Connection: close\r\n").framing.keep_alive);
  EXPECT_FALSE(parse("Connection: TE, CLOSE ,x\r\nConnection: keep-alive\r\n").framing.keep_alive);
  EXPECT_TRUE(parse("Connection: closed\r\n").framing.keep_alive);
  EXPECT_FALSE(parse("", old).framing.keep_alive);
  EXPECT_TRUE(parse("Connection: Keep-Alive\r\n", old).framing.keep_alive);
}

TEST(ParseHead, ReadsExpectations) {
  EXPECT_TRUE(parse("Expect: 100-Continue\r\n").framing.expects_continue);
  EXPECT_FALSE(parse("Expect: 100-continue\r\n", "GET / HTTP/1.0\r\n").framing.expects_continue);
  EXPECT_EQ(verdict("Expect: a miracle\r\n"), "417 expectation_failed");
}

TEST(ParseHead, LowersTheDeadline) {
  const auto wait = [](std::string_view value) {
    const RequestHead head = parse("X-Request-Timeout-Ms: " + std::string(value) + "\r\n").head;
    return (head.deadline - head.arrival) / milliseconds(1);
  };
  EXPECT_EQ(wait("100"), 100);
  EXPECT_EQ(wait("5000"), 5'000);
  EXPECT_EQ(wait("5001"), 5'000);
  EXPECT_EQ(wait("99999999999999999999999"), 5'000);
  for (const std::string_view bad : {"0", "-1", "1.5", "", "1s"}) {
    EXPECT_EQ(verdict("X-Request-Timeout-Ms: " + std::string(bad) + "\r\n"), "400 invalid_value")
        << bad;
  }
}

TEST(ParseHead, KeepsTheIdForAnErrorBehindIt) {
  RequestHead head = begun();
  EXPECT_THROW((void)parse_head("GET / HTTP/1.1\r\nX-Request-Id: theirs\r\nbad\r\n\r\n", 8, head),
               ApiError);
  EXPECT_EQ(head.id, "theirs");
}

TEST(ParseHead, KeepsThePathForAnErrorOfIt) {
  RequestHead head = begun();
  EXPECT_THROW(
      (void)parse_head("GET /v2/models/%00?key=secret HTTP/1.1\r\nHost: h\r\n\r\n", 8, head),
      ApiError);
  EXPECT_EQ(head.path, "/v2/models/%00") << "whose protocol has errors of another form; no query";
}

TEST(HeadScanner, FindsTheEndWhereverPiecesEnd) {
  const std::string text = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    HeadScanner scanner;
    EXPECT_EQ(scanner.scan(std::string_view(text).substr(0, cut)), std::nullopt) << cut;
    EXPECT_EQ(scanner.scan(text + "body\n\n"), text.size()) << cut;
  }
}

TEST(HeadScanner, RefusesControlCharactersAtOnce) {
  using std::string_literals::operator""s;
  for (const std::string& text : {"GET / HTTP/1.1\n"s, "GET / HTTP/1.1\r\r\n"s, "GET\r / HTTP/1.1"s,
                                  "A\0"s, "A\x7f"s, "\x16\x03\x01\x02"s, "\n"s}) {
    HeadScanner scanner;
    EXPECT_THROW((void)scanner.scan(text), ApiError) << text;
  }
}

TEST(ParseHead, TakesUrlsForTheirPathsAndHosts) {
  const Parsed parsed = parse("", "GET http://b:80/p%20q?x=1 HTTP/1.1\r\nHost: a\r\nA: 1\r\n");
  EXPECT_EQ(parsed.head.path, "/p q");
  EXPECT_EQ(parsed.head.query, "x=1");
  const auto is_host = [](const Header& header) { return header.name == "Host"; };
  EXPECT_EQ(std::ranges::count_if(parsed.head.headers, is_host), 1);
  EXPECT_EQ(*find_header(parsed.head.headers, "host"), "b:80");
  for (const std::string_view target : {"http://h", "HTTPS://h", "http://h/"}) {
    const Parsed root = parse("", std::string("GET ").append(target).append(" HTTP/1.0\r\n"));
    EXPECT_EQ(root.head.path, "/") << target;
    EXPECT_EQ(*find_header(root.head.headers, "host"), "h") << target;
  }
  EXPECT_EQ(parse("", "GET http://h?a/b HTTP/1.1\r\nHost: h\r\n").head.query, "a/b");
}

TEST(ParseHead, RefusesUrlsThatNameNoHost) {
  for (const std::string_view target :
       {"http://", "http:///a", "http://?a", "http://u@h/a", "http://h#a", "http://h/a#b",
        "http:/a", "ftp://h/a", "h/a"}) {
    const std::string line = std::string("GET ").append(target);
    EXPECT_EQ(verdict("", line + " HTTP/1.1\r\nHost: h\r\n"), kMalformed) << target;
  }
  EXPECT_EQ(verdict("", "GET http://h/a HTTP/1.1\r\n"), kMalformed) << "without the header";
}

TEST(LeadingBreaks, CountsWholeBreaks) {
  EXPECT_EQ(leading_breaks("\r\n\r\nGET"), 4u);
  EXPECT_EQ(leading_breaks("\r\n\r"), 2u);
  EXPECT_EQ(leading_breaks("GET\r\n"), 0u);
}

std::string path_of(std::string_view target) { return split_target(target).path; }

TEST(SplitTarget, DecodesThePathOnce) {
  EXPECT_EQ(path_of("/"), "/");
  EXPECT_EQ(path_of("/a%2Fb%2fc"), "/a/b/c");
  EXPECT_EQ(path_of("/%2541"), "/%41");
  EXPECT_EQ(path_of("/%e4%B8%ad"), "/\xe4\xb8\xad");
}

TEST(SplitTarget, LeavesTheQueryAsItCame) {
  EXPECT_EQ(split_target("/a?b=%20&c?d").query, "b=%20&c?d");
  EXPECT_EQ(split_target("/a?").query, "");
  EXPECT_EQ(split_target("/a%3fb").query, "");
  EXPECT_EQ(path_of("/a?b=%zz"), "/a");
}

TEST(SplitTarget, RefusesOthers) {
  for (const std::string_view target :
       {"",     "a",     "*",         "http://h/a", "?a",     "/%",   "/%4",
        "/%4g", "/%g4",  "/a%2",      "/%00",       "/%0a",   "/%7F", "/a b",
        "/a#b", "/\x7f", "/\xc3\xa9", "/a?\x01",    "/a?b c", "/% 1"}) {
    EXPECT_THROW((void)split_target(target), ApiError) << target;
  }
}

}  // namespace
}  // namespace fovea::serve
