// Where a server listens, how many connections it holds, and how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <mutex>

#include "fovea/error.h"
#include "support/temporary_directory.h"
#include "test_server.h"

namespace fovea::serve {
namespace {

using std::chrono::milliseconds;
using test::get;
using test::post;
using test::RawClient;
using test::TemporaryDirectory;
using test::TestServer;
using testing::HasSubstr;

HttpOptions at_socket(const std::string& path) {
  HttpOptions options = test::loopback();
  options.unix_socket = path;
  return options;
}

/// The reason why no server can be made, or "made".
std::string refusal(const HttpOptions& options) {
  try {
    TestServer tested(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "made";
}

TEST(ServerLifecycle, ListensOnAUnixSocket) {
  const TemporaryDirectory directory;
  const std::string path = directory / "s";
  {
    TestServer tested(at_socket(path));
    EXPECT_EQ(tested.ask(get("/health")).body, "ok");
    EXPECT_EQ(tested.server->address(), "unix:" + path);
    EXPECT_EQ(tested.server->port(), 0);
    struct stat status {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777u, 0660u);
  }
  EXPECT_EQ(directory.entries(), 0u);
}

TEST(ServerLifecycle, ReplacesAStaleSocketOnly) {
  const TemporaryDirectory directory;
  const std::string path = directory / "s";
  TestServer first(at_socket(path));
  EXPECT_THAT(refusal(at_socket(path)), HasSubstr("in use"));
  EXPECT_EQ(first.ask(get("/health")).body, "ok");
  // A server that was killed leaves its socket behind.
  ASSERT_EQ(link(path.c_str(), (directory / "stale").c_str()), 0);
  first.server.reset();
  TestServer second(at_socket(directory / "stale"));
  EXPECT_EQ(second.ask(get("/health")).body, "ok");
}

TEST(ServerLifecycle, RemovesNothingElseAtThePath) {
  const TemporaryDirectory directory;
  test::write_text(directory / "file", "precious");
  EXPECT_THAT(refusal(at_socket(directory / "file")), HasSubstr("no socket"));
  EXPECT_EQ(test::read_text(directory / "file"), "precious");
  {
    TestServer tested(at_socket(directory / "s"));
    std::filesystem::remove(directory / "s");
    test::write_text(directory / "s", "of another");
  }
  EXPECT_EQ(test::read_text(directory / "s"), "of another");
}

TEST(ServerLifecycle, NamesWhyItCannotListen) {
  const TemporaryDirectory directory;
  EXPECT_THAT(refusal(at_socket(directory / std::string(200, 'x'))),
              HasSubstr("at most 107 bytes"));
  EXPECT_THAT(refusal(at_socket(directory / "none/s")), HasSubstr("No such file"));
  const TestServer first;
  HttpOptions options = test::loopback();
  options.port = first.server->port();
  EXPECT_THAT(refusal(options), HasSubstr("in use"));
  options.host = "no.such.host.invalid";
  EXPECT_THAT(refusal(options), HasSubstr("no.such.host.invalid"));
  options = test::loopback();
  options.root_path = "api";
  EXPECT_THAT(refusal(options), HasSubstr("root path"));
  options = at_socket(directory / "s");
  options.tls.emplace();
  EXPECT_THAT(refusal(options), HasSubstr("not encrypted"));
}

TEST(ServerLifecycle, ListensOnIpv6) {
  for (const std::string host : {"::1", "[::1]"}) {
    HttpOptions options = test::loopback();
    options.host = host;
    std::optional<TestServer> tested;
    try {
      tested.emplace(options);
    } catch (const Error&) {
      GTEST_SKIP() << "no IPv6 here";
    }
    EXPECT_EQ(tested->server->address(), "http://[::1]:" + std::to_string(tested->server->port()));
  }
}

HttpOptions with_connections(int most) {
  HttpOptions options = test::loopback();
  options.max_connections = most;
  return options;
}

TEST(ServerLifecycle, LetsClientsWaitBeyondTheLimitWhileAllOthersAreServed) {
  TestServer tested(with_connections(2));
  RawClient one = tested.connect();
  RawClient two = tested.connect();
  one.send(post("/hold", "x"));
  two.send(post("/hold", "x"));
  ASSERT_TRUE(tested.wait_held(2));
  RawClient three = tested.connect();
  three.send(get("/health"));
  EXPECT_FALSE(three.is_readable(200));
  EXPECT_EQ(tested.server->stats().connections, 2);
  one.close();
  EXPECT_EQ(three.receive_reply().status, 200);
  tested.release();
  EXPECT_EQ(two.receive_reply().body, "held");
  EXPECT_EQ(tested.server->stats().accepted, 3);
}

TEST(ServerLifecycle, ClosesTheLongestIdleConnectionForANewOne) {
  HttpOptions options = with_connections(3);
  options.io_threads = 1;  // so that it sees them in the order in which they come
  TestServer tested(options);
  RawClient oldest = tested.connect();
  EXPECT_EQ(oldest.ask(get("/health")).status, 200);
  RawClient silent = tested.connect();
  RawClient used = tested.connect();
  EXPECT_EQ(used.ask(get("/health")).status, 200);
  EXPECT_EQ(oldest.ask(get("/health")).status, 200);  // now the silent one is idle for longest
  EXPECT_EQ(tested.ask(get("/health")).status, 200);
  EXPECT_TRUE(silent.is_closed());
  EXPECT_EQ(oldest.ask(get("/health")).status, 200);
  EXPECT_EQ(used.ask(get("/health")).status, 200);
}

TEST(ServerLifecycle, ServesNewClientsWhateverNumberSaysNothing) {
  TestServer tested(with_connections(20));
  std::vector<RawClient> silent;
  for (int i = 0; i < 60; ++i) silent.push_back(tested.connect());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(tested.ask(get("/health")).status, 200);
}

TEST(ServerLifecycle, EndsBodiesThatComeSlowlyFromAClientWithMostConnectionsForAnother) {
  TestServer tested(with_connections(8));
  std::vector<RawClient> slow;
  for (int i = 0; i < 7; ++i) {
    slow.push_back(tested.connect());
    slow.back().send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nbody");
  }
  RawClient honest = tested.connect(2);
  honest.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbo");
  while (tested.server->stats().requests_in_progress < 8) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  RawClient late = tested.connect(3);
  EXPECT_EQ(late.ask(get("/health")).status, 200);
  EXPECT_EQ(honest.ask("dy").body, "body");
  EXPECT_EQ(tested.wait_observed(1).at(0).status, 499);
}

TEST(ServerLifecycle, ClosesAnIdleConnectionOfTheClientThatHasMostOfThem) {
  TestServer tested(with_connections(5));
  RawClient honest = tested.connect(2);
  EXPECT_EQ(honest.ask(get("/health")).status, 200);
  std::vector<RawClient> many;
  for (int i = 0; i < 4; ++i) {
    many.push_back(tested.connect());
    EXPECT_EQ(many.back().ask(get("/health")).status, 200);
  }
  const RawClient late = tested.connect(3);
  const auto has_gone = [](const RawClient& client) { return client.is_readable(10'000); };
  EXPECT_TRUE(std::ranges::any_of(many, has_gone));
  EXPECT_EQ(honest.ask(get("/health")).status, 200);
}

TEST(ServerLifecycle, ServesBesideAThousandIdleConnections) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < 3'000) GTEST_SKIP() << "too few files";
  limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, 3'000);
  setrlimit(RLIMIT_NOFILE, &limit);
  TestServer tested;
  std::vector<RawClient> idle;
  for (int i = 0; i < 1'000; ++i) {
    idle.push_back(tested.connect());
    if (i % 2 == 0) {
      EXPECT_EQ(idle.back().ask(get("/health")).status, 200);
    }
  }
  RawClient busy = tested.connect();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(busy.ask(post("/echo", "x")).body, "x");
  for (RawClient& client : idle) EXPECT_EQ(client.ask(get("/health")).status, 200);
  EXPECT_EQ(tested.server->stats().connections, 1'001);
}

class Lines : public LogSink {
 public:
  void write(LogLevel, std::string_view line) override {
    const std::lock_guard lock(mutex_);
    lines_.emplace_back(line);
  }
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST(ServerLifecycle, PausesWhereThereAreNoMoreFiles) {
  Lines log;
  // A sanitizer opens a pipe where it sees a type for the first time.
  log_to(&log, LogLevel::kInfo, "begins");
  HttpOptions options = test::loopback();
  options.log = &log;
  TestServer tested(options);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  // The one connection before the limit stays open: one that closed would free a number, late.
  RawClient waits = tested.connect();
  EXPECT_EQ(waits.ask(get("/health")).status, 200);
  // The client's socket takes the last number: none is left for the server's.
  const int lowest = dup(waits.descriptor());
  close(lowest);
  const rlimit low{.rlim_cur = static_cast<rlim_t>(lowest) + 1, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &low);
  RawClient client = tested.connect();
  client.send(get("/health"));
  EXPECT_FALSE(client.is_readable(350));
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(client.receive_reply().status, 200);
  EXPECT_THAT(log.lines(), testing::ElementsAre("begins", HasSubstr("http_accept_paused")));
}

TEST(ServerLifecycle, DrainsAndFinishesWhatHasBegun) {
  TestServer tested;
  RawClient idle = tested.connect();
  EXPECT_EQ(idle.ask(get("/health")).status, 200);
  RawClient fresh = tested.connect();
  RawClient works = tested.connect();
  works.send(post("/hold", "x"));
  RawClient sends = tested.connect();
  sends.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbo");
  ASSERT_TRUE(tested.wait_held(1));
  while (tested.server->stats().requests_in_progress < 2) std::this_thread::yield();
  tested.server->drain();
  EXPECT_TRUE(idle.is_closed());
  EXPECT_TRUE(fresh.is_closed());
  EXPECT_FALSE(tested.server->is_idle());
  const test::RawReply late = sends.ask("dy");
  EXPECT_EQ(late.body, "body");
  EXPECT_EQ(late.header("Connection"), "close");
  tested.release();
  EXPECT_EQ(works.receive_reply().header("Connection"), "close");
  EXPECT_TRUE(tested.wait_idle());
  EXPECT_THROW(tested.connect(), std::runtime_error);
}

TEST(ServerLifecycle, StopsInTimeWhateverIsGoingOn) {
  TestServer tested;
  RawClient works = tested.connect();
  works.send(post("/hold", "x"));
  RawClient sends = tested.connect();
  sends.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbo");
  RawClient begins = tested.connect();
  begins.send("GET /hea");
  RawClient reads_not = tested.connect();
  reads_not.send(get("/big"));
  ASSERT_TRUE(tested.wait_held(1));
  while (tested.server->stats().requests_in_progress < 3) std::this_thread::yield();
  tested.server->stop(milliseconds(50));
  EXPECT_TRUE(tested.server->is_idle());
  const test::RawReply last = works.receive_reply();
  EXPECT_EQ(last.status, 503);
  EXPECT_THAT(last.body, HasSubstr("\"code\":\"draining\""));
  EXPECT_TRUE(tested.wait_gone(1));
  EXPECT_TRUE(sends.is_closed());
  EXPECT_TRUE(begins.is_closed());
  tested.server->stop(milliseconds(0));  // again, to no effect
}

TEST(ServerLifecycle, WaitsForWhatEndsWhileItStops) {
  TestServer tested;
  RawClient works = tested.connect();
  works.send(post("/hold", "x"));
  ASSERT_TRUE(tested.wait_held(1));
  std::jthread releases([&] {
    while (!works.is_readable(50) && tested.server->stats().connections > 0) tested.release();
  });
  tested.server->stop(std::chrono::minutes(1));
  releases.join();
  EXPECT_EQ(works.receive_reply().body, "held");
}

TEST(ServerLifecycle, EndsWithoutHavingStarted) {
  const Router router;
  Server server(test::loopback(), {.router = &router, .gate = {}, .observer = {}, .run_task = {}});
  EXPECT_GT(server.port(), 0);
  EXPECT_TRUE(server.is_idle());
  server.stop(milliseconds(0));
}

TEST(ServerLifecycle, ServesManyClientsWhileOthersLeave) {
  TestServer tested;
  std::atomic<int> answered = 0;
  std::vector<std::jthread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        RawClient client = tested.connect();
        client.send(post("/hold", "x"));
        if ((i + t) % 3 == 0) continue;  // leaves
        std::string body(1'000 * static_cast<std::size_t>(i), 'y');
        RawClient other = tested.connect();
        if (other.ask(post("/echo", body)).body == body) ++answered;
        tested.release();
      }
    });
  }
  threads.clear();
  tested.release();
  EXPECT_EQ(answered, 4 * 50 - 67);
  EXPECT_TRUE(tested.wait_idle());
}

}  // namespace
}  // namespace fovea::serve
