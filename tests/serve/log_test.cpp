#include "serve/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <future>
#include <optional>

#include "fovea/error.h"
#include "serve/text/json.h"
#include "support/json.h"

namespace fovea::serve {
namespace {

using fovea::test::Json;

using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kTime = 1'767'261'600'007;  // 2026-01-01T10:00:00.007Z

TEST(LogLine, BeginsWithTimeAndLevel) {
  EXPECT_EQ(log_line(LogFormat::kText, kTime, LogLevel::kInfo, "ready model=m"),
            "2026-01-01T10:00:00.007Z info ready model=m");
}

TEST(LogLine, TurnsPairsIntoFieldsOfJson) {
  EXPECT_EQ(
      log_line(LogFormat::kJson, kTime, LogLevel::kWarning, "ready model=m=2 path=/x"),
      R"({"time":"2026-01-01T10:00:00.007Z","level":"warning","event":"ready","model":"m=2","path":"/x"})");
}

TEST(LogLine, HasNumbersAsNumbersInJson) {
  const std::string line =
      "request id=12 peer=1 method=GET path=/2 status=200 ms=12.5 in=-3 a=007 "
      "b=1. c=.5 d=1e5 e=NaN f=-";
  const Json json = Json::parse(log_line(LogFormat::kJson, kTime, LogLevel::kInfo, line));
  EXPECT_EQ(json["status"], 200);
  EXPECT_EQ(json["ms"], 12.5);
  EXPECT_EQ(json["in"], -3);
  EXPECT_EQ(json["id"], "12") << "the client's: text, whatever it spells";
  EXPECT_EQ(json["peer"], "1");
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    EXPECT_TRUE(json[name].is_string()) << name;
  }
}

TEST(LogLine, ReadsQuotesButThoseOfClients) {
  const auto read = [](const char* line) {
    return Json::parse(log_line(LogFormat::kJson, kTime, LogLevel::kInfo, line));
  };
  const Json json = read("engine.initialized model=\"a b\" rows=3 reason=\"12\"");
  EXPECT_EQ(json["event"], "engine.initialized");
  EXPECT_EQ(json["model"], "a b");
  EXPECT_EQ(json["rows"], 3);
  EXPECT_EQ(json["reason"], "12");
  EXPECT_EQ(read("engine.initialized budgets.default=64,128 rows=3")["budgets.default"], "64,128");
  const Json forged = read("request id=\"x path=/p\" status=404");
  EXPECT_EQ(forged["id"], "\"x");
  EXPECT_EQ(forged["path"], "/p\"");
}

TEST(LogLine, KeepsOtherTextAsAMessage) {
  for (const char* line : {"Not an event", "no pairs here", "event a=1 b", "event  a=1", "",
                           "done.", "event a=\"b c"}) {
    const Json json = Json::parse(log_line(LogFormat::kJson, kTime, LogLevel::kError, line));
    EXPECT_EQ(json["message"], line);
  }
}

TEST(LogLine, LetsNobodyBeginALineOfTheirOwn) {
  EXPECT_EQ(log_line(LogFormat::kText, kTime, LogLevel::kInfo, "request id=a\nb\x1b[31m"),
            "2026-01-01T10:00:00.007Z info request id=a?b?[31m");
}

TEST(LogLine, HoldsNothingThatMovesTheTextOfATerminal) {
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    const std::string line = log_line(format, kTime, LogLevel::kInfo,
                                      "request path=/a\u009b31mRED\u202etxt\xff\xfe status=404");
    EXPECT_THAT(line, HasSubstr("/a?31mRED?txt??"));
    EXPECT_THAT(line, HasSubstr("404"));
  }
}

TEST(LogLine, KeepsItsEndWhateverAClientSends) {
  const std::string line =
      "request path=/" + std::string(60'000, 'A') + " status=404 error=route_not_found";
  const std::string text = log_line(LogFormat::kText, kTime, LogLevel::kInfo, line);
  EXPECT_LT(text.size(), kMaxMessageBytes + 64);
  EXPECT_THAT(text, testing::EndsWith(" status=404 error=route_not_found"));
  const Json json = Json::parse(log_line(LogFormat::kJson, kTime, LogLevel::kInfo, line));
  EXPECT_EQ(json.at("status"), 404);
}

TEST(RequestLine, TellsNoSecrets) {
  RequestHead head;
  head.method = "POST";
  head.path = "/v1/enc ode";
  head.query = "token=secret";
  head.headers = {{"Authorization", "Bearer secret"}};
  head.id = "r-1";
  head.peer = "127.0.0.1:9";
  const Served served{.head = head,
                      .status = 404,
                      .error_code = "route_not_found",
                      .bytes_in = 3,
                      .bytes_out = 4,
                      .duration = std::chrono::milliseconds(12)};
  EXPECT_EQ(request_line(served),
            "request id=r-1 peer=127.0.0.1:9 method=POST path=/v1/enc+ode status=404 ms=12.0 in=3 "
            "out=4 error=route_not_found");
}

TEST(ServerLog, WritesFromItsLevelOn) {
  testing::internal::CaptureStderr();
  {
    ServerLog log(LogFormat::kText, LogLevel::kWarning);
    log.write(LogLevel::kInfo, "quiet");
    log.write(LogLevel::kError, "loud");
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr(" error loud\n"));
  EXPECT_THAT(text, Not(HasSubstr("quiet")));
}

/// All that comes out of a descriptor until its other end is closed.
std::string text_of(int descriptor) {
  std::string text;
  std::array<char, 4096> piece{};
  for (ssize_t size = 1; size > 0;) {
    size = read(descriptor, piece.data(), piece.size());
    if (size > 0) text.append(piece.data(), static_cast<std::size_t>(size));
  }
  return text;
}

TEST(ServerLog, KeepsNobodyWaitingForItsReader) {
  constexpr std::int64_t kLines = 30'000;
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  auto log = std::make_optional<ServerLog>(LogFormat::kText, LogLevel::kInfo, pipe[1]);
  const std::string line = "event=" + std::string(100, 'x');
  for (std::int64_t i = 0; i < kLines; ++i) log->write(LogLevel::kInfo, line);  // nobody reads yet
  std::future<std::string> read = std::async(std::launch::async, [&] { return text_of(pipe[0]); });
  log.reset();
  close(pipe[1]);
  const std::string text = read.get();
  close(pipe[0]);
  const std::string mark = "warning log_lost lines=";
  const std::size_t at = text.find(mark);
  ASSERT_NE(at, std::string::npos);
  const std::int64_t lost = std::stoll(text.substr(at + mark.size()));
  EXPECT_EQ(std::ranges::count(text, '\n') - 1 + lost, kLines);
}

TEST(ServerLog, EndsWhereNobodyReads) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  {
    ServerLog log(LogFormat::kText, LogLevel::kInfo, pipe[1]);
    const std::string line(1000, 'x');
    for (int i = 0; i < 200; ++i) log.write(LogLevel::kInfo, line);  // a pipe holds 64 KiB
  }
  close(pipe[1]);
  EXPECT_THAT(text_of(pipe[0]), testing::StartsWith("2"));  // of the time of the first line
  close(pipe[0]);
}

}  // namespace
}  // namespace fovea::serve
