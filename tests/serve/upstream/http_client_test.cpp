#include "serve/upstream/http_client.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "serve/http/test_server.h"
#include "serve/http/tls_files.h"
#include "support/local_server.h"
#include "support/temporary_directory.h"

namespace fovea::serve {
namespace {

/// As long as one of these lives, the system's resolver has no answer for a name.
class HangingNames {
 public:
  static constexpr std::string_view kHost = "hangs.invalid";

  HangingNames() {
    asked() = 0;
    hangs() = true;
  }
  ~HangingNames() {
    hangs() = false;
    hangs().notify_all();
  }
  HangingNames(const HangingNames&) = delete;
  HangingNames& operator=(const HangingNames&) = delete;

  /// What the resolver says when they are gone.
  static int answer() {
    ++asked();
    hangs().wait(true);
    return EAI_NONAME;
  }
  /// How often it was asked.
  static std::atomic<int>& asked() {
    static std::atomic<int> count = 0;
    return count;
  }

 private:
  static std::atomic<bool>& hangs() {
    static std::atomic<bool> flag = false;
    return flag;
  }
};

}  // namespace
}  // namespace fovea::serve

/// In front of that of the C library, for libcurl, too.
extern "C" [[gnu::visibility("default")]] int getaddrinfo(const char* name, const char* service,
                                                          const addrinfo* hints, addrinfo** found) {
  using fovea::serve::HangingNames;
  static const auto ask = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if (name != nullptr && name == HangingNames::kHost) return HangingNames::answer();
  return ask(name, service, hints, found);
}

namespace fovea::serve {
namespace {

using fovea::test::http_reply;
using fovea::test::LocalServer;
using fovea::test::send_text;
using fovea::test::wait_for_close;

/// Reads the body of a request.
std::string read_body(int socket, const std::string& head) {
  const std::size_t at = head.find("Content-Length: ");
  std::string body(at == std::string::npos ? 0 : std::stoul(head.substr(at + 16)), '\0');
  for (std::size_t got = 0; got < body.size();) {
    const ssize_t more = recv(socket, body.data() + got, body.size() - got, 0);
    if (more <= 0) throw std::runtime_error("no whole body came");
    got += static_cast<std::size_t>(more);
  }
  return body;
}

/// What has come of a request. Its functions are called on the thread of the client.
class Listener {
 public:
  ClientEvents events() {
    return {.on_head = [this](ClientHead came) { return take_head(std::move(came)); },
            .on_data = [this](std::string_view bytes) { return take_data(bytes); },
            .on_end = [this](ClientEnd end) { change([&] { end_ = end; }); }};
  }
  ClientEnd wait_end() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::minutes(1), [&] { return end_.has_value(); })) {
      throw std::runtime_error("it has not ended");
    }
    return *end_;
  }
  bool wait_body(std::string_view all) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return body == all; });
  }
  bool wait_refused() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return refused_; });
  }

  ClientHead head;
  std::string body;
  std::function<bool(const ClientHead&)> wants = [](const ClientHead&) { return true; };
  std::atomic<bool> has_room = true;

 private:
  template <class Change>
  void change(const Change& change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }
  bool take_head(ClientHead came) {
    change([&] { head = std::move(came); });
    return wants(head);
  }
  bool take_data(std::string_view bytes) {
    const bool takes = has_room;
    change([&] {
      if (takes) body += bytes;
      refused_ = refused_ || !takes;
    });
    return takes;
  }

  std::mutex mutex_;  // guards what others read while it runs
  std::condition_variable changed_;
  std::optional<ClientEnd> end_;
  bool refused_ = false;
};

ClientRequest get(const LocalServer& server) {
  return {.method = "GET",
          .url = server.url("/x?y=1"),
          .headers = {},
          .body = {},
          .head_until = Clock::now() + std::chrono::minutes(1)};
}

ClientRequest post(const LocalServer& server, std::vector<BodyPart> body) {
  ClientRequest request = get(server);
  request.method = "POST";
  request.headers = {{"X-A", "1"}, {"X-Empty", ""}, {"Content-Type", "a/b"}};
  request.body = std::move(body);
  return request;
}

/// A client, and what has come of its one request.
struct Asked {
  explicit Asked(ClientRequest request) { start(std::move(request)); }
  Asked(ClientRequest request, std::function<bool(const ClientHead&)> wants) {
    heard.wants = std::move(wants);
    start(std::move(request));
  }
  void start(ClientRequest request) {
    id = client.make_id();
    client.start(id, std::move(request), heard.events());
  }

  Listener heard;
  HttpClient client;
  HttpClient::Id id = 0;
};

TEST(HttpClient, SendsAllPartsOfABody) {
  std::string got;
  LocalServer server([&](int socket, const std::string& head) {
    got = read_body(socket, head);
    send_text(socket, http_reply(201, "answer", "X-B: 2\r\nX-C:\r\n"));
  });
  const std::string large(3'000'000, 'x');
  Asked asked(post(server, {body_part(std::string("one,")), body_part(std::string()),
                            body_part(large), body_part(std::string(",end"))}));
  EXPECT_EQ(asked.heard.wait_end(), ClientEnd::kComplete);
  EXPECT_EQ(got, "one," + large + ",end");
  EXPECT_EQ(asked.heard.head.status, 201);
  EXPECT_EQ(asked.heard.body, "answer");
  EXPECT_EQ(*find_header(asked.heard.head.headers, "x-b"), "2");
  EXPECT_EQ(*find_header(asked.heard.head.headers, "x-c"), "");
  const std::string head = server.heads()[0];
  EXPECT_THAT(head, testing::StartsWith("POST /x?y=1 HTTP/1.1\r\n"));
  EXPECT_THAT(head, testing::HasSubstr("X-A: 1\r\nX-Empty:\r\nContent-Type: a/b\r\n"));
  EXPECT_THAT(head, testing::Not(testing::HasSubstr("Expect")));
}

TEST(HttpClient, GivesPiecesAsTheyCome) {
  std::mutex go_on;
  go_on.lock();
  LocalServer server([&](int socket, const std::string&) {
    send_text(socket, "HTTP/1.1 100 Continue\r\nX-Interim: 1\r\n\r\n");
    send_text(socket, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    const std::lock_guard lock(go_on);
    send_text(socket, "3\r\ndef\r\n0\r\nX-Trailer: 1\r\n\r\n");
  });
  Asked asked(get(server));
  EXPECT_TRUE(asked.heard.wait_body("abc"));
  go_on.unlock();
  EXPECT_EQ(asked.heard.wait_end(), ClientEnd::kComplete);
  EXPECT_EQ(asked.heard.body, "abcdef");
  EXPECT_EQ(find_header(asked.heard.head.headers, "X-Interim"), nullptr);
  EXPECT_EQ(find_header(asked.heard.head.headers, "X-Trailer"), nullptr);
}

TEST(HttpClient, WaitsForRoom) {
  LocalServer server(
      [](int socket, const std::string&) { send_text(socket, http_reply(200, "body")); });
  Listener heard;
  heard.has_room = false;
  HttpClient client;
  const HttpClient::Id id = client.make_id();
  ClientRequest request = get(server);
  request.idle_timeout = std::chrono::milliseconds(1);  // does not count while there is no room
  client.start(id, std::move(request), heard.events());
  EXPECT_TRUE(heard.wait_refused());
  heard.has_room = true;
  client.resume(id);
  EXPECT_TRUE(heard.wait_body("body"));
}

TEST(HttpClient, EndsWhatIsNotWantedOnceThereIsRoom) {
  LocalServer server([](int socket, const std::string&) {
    send_text(socket, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc");
    wait_for_close(socket);
  });
  std::promise<void> refused;
  std::promise<ClientEnd> ended;
  int asked = 0;
  HttpClient client;
  const HttpClient::Id id = client.make_id();
  ClientRequest request = get(server);
  request.idle_timeout = std::chrono::seconds(1);
  client.start(id, std::move(request),
               {.on_head = [](const ClientHead&) { return true; },
                .on_data =
                    [&](std::string_view) {
                      if (++asked > 1) throw std::runtime_error("not wanted");
                      refused.set_value();
                      return false;
                    },
                .on_end = [&](ClientEnd end) { ended.set_value(end); }});
  refused.get_future().wait();
  client.resume(id);
  EXPECT_EQ(ended.get_future().get(), ClientEnd::kUnwanted);
  EXPECT_EQ(asked, 2);
}

TEST(HttpClient, DoesNotWaitForANameServerThatNoRequestWaitsFor) {
  LocalServer server(
      [](int socket, const std::string&) { send_text(socket, http_reply(200, "body")); });
  Listener lost;
  Listener left;
  Listener heard;
  HttpClient client;
  const HangingNames names;
  ClientRequest request = get(server);
  request.url = "http://" + std::string(HangingNames::kHost) + "/";
  request.connect_timeout = std::chrono::milliseconds(20);
  client.start(client.make_id(), request, lost.events());
  EXPECT_EQ(lost.wait_end(), ClientEnd::kNoConnection);
  request.connect_timeout = std::chrono::minutes(2);
  const HttpClient::Id id = client.make_id();
  client.start(id, request, left.events());
  for (int i = 0; i < 6000 && HangingNames::asked() < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(HangingNames::asked(), 2);
  client.stop(id);
  EXPECT_EQ(left.wait_end(), ClientEnd::kStopped);
  client.start(client.make_id(), get(server), heard.events());
  EXPECT_EQ(heard.wait_end(), ClientEnd::kComplete);
}

TEST(HttpClient, TellsHowARequestHasFailed) {
  struct Case {
    const char* name;
    const char* answer;
    ClientEnd end;
  };
  for (const Case& test :
       {Case{"nothing", "", ClientEnd::kNoAnswer},
        Case{"half a head", "HTTP/1.1 200 OK\r\nX-A", ClientEnd::kNoAnswer},
        Case{"no HTTP", "SSH-2.0-x\r\n\r\n", ClientEnd::kNoAnswer},
        Case{"half a body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", ClientEnd::kBroken},
        Case{"no last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
             ClientEnd::kBroken}}) {
    LocalServer server([&](int socket, const std::string&) { send_text(socket, test.answer); });
    EXPECT_EQ(Asked(get(server)).heard.wait_end(), test.end) << test.name;
  }
  std::optional<LocalServer> gone;
  gone.emplace([](int, const std::string&) {});
  const ClientRequest request = get(*gone);
  gone.reset();
  EXPECT_EQ(Asked(request).heard.wait_end(), ClientEnd::kNoConnection);
  ClientRequest nowhere = request;
  nowhere.url = "http://name.invalid/";
  EXPECT_EQ(Asked(nowhere).heard.wait_end(), ClientEnd::kNoConnection);
}

TEST(HttpClient, TakesNoHeadWithoutBounds) {
  LocalServer server([](int socket, const std::string&) {
    send_text(socket, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 101; ++i) send_text(socket, "X-A: 1\r\n");
    send_text(socket, "\r\n");
    wait_for_close(socket);
  });
  EXPECT_EQ(Asked(get(server)).heard.wait_end(), ClientEnd::kNoAnswer);
}

TEST(HttpClient, EndsWhatIsLate) {
  LocalServer hung([](int socket, const std::string&) { wait_for_close(socket); });
  ClientRequest request = get(hung);
  request.head_until = Clock::now() + std::chrono::milliseconds(50);
  EXPECT_EQ(Asked(request).heard.wait_end(), ClientEnd::kLate);

  LocalServer slow([](int socket, const std::string&) {
    send_text(socket, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
    wait_for_close(socket);
  });
  request = get(slow);
  request.idle_timeout = std::chrono::milliseconds(50);
  Asked asked(request);
  EXPECT_EQ(asked.heard.wait_end(), ClientEnd::kLate);
  EXPECT_EQ(asked.heard.body, "abc");
}

TEST(HttpClient, EndsWhatIsNotWanted) {
  LocalServer server([](int socket, const std::string&) {
    send_text(socket, "HTTP/1.1 503 No\r\nContent-Length: 9\r\n\r\n");
    wait_for_close(socket);
  });
  const auto refuse = [](const ClientHead& head) { return head.status != 503; };
  EXPECT_EQ(Asked(get(server), refuse).heard.wait_end(), ClientEnd::kUnwanted);
  const auto fail = [](const ClientHead&) -> bool { throw std::runtime_error("no"); };
  EXPECT_EQ(Asked(get(server), fail).heard.wait_end(), ClientEnd::kUnwanted);
}

TEST(HttpClient, TrustsWhomItIsToldTo) {
  const fovea::test::TemporaryDirectory folder;
  const fovea::test::Identity identity("localhost");
  const fovea::test::Identity stranger("localhost");
  identity.write_certificate(folder / "cert.pem");
  identity.write_key(folder / "key.pem");
  stranger.write_certificate(folder / "other.pem");
  HttpOptions options = fovea::test::loopback();
  options.tls = TlsFiles{.certificate = folder / "cert.pem", .key = folder / "key.pem"};
  const fovea::test::TestServer server(options);
  const auto end = [&](const std::string& ca_certs, const std::string& host,
                       const std::string& address = {}) {
    Listener heard;
    HttpClient client(ca_certs);
    ClientRequest request{.method = "GET", .head_until = Clock::now() + std::chrono::minutes(1)};
    request.url = "https://" + host + ":" + std::to_string(server.server->port()) + "/health";
    request.address = address;
    client.start(client.make_id(), request, heard.events());
    return heard.wait_end();
  };
  const std::string own = fovea::test::read_text(folder / "cert.pem");
  EXPECT_EQ(end(own, "localhost"), ClientEnd::kComplete);
  EXPECT_EQ(end("", "localhost"), ClientEnd::kNoConnection) << "whom the system does not know";
  EXPECT_EQ(end(own, "127.0.0.1"), ClientEnd::kNoConnection) << "another name";
  EXPECT_EQ(end(fovea::test::read_text(folder / "other.pem"), "localhost"),
            ClientEnd::kNoConnection);
  EXPECT_EQ(end(own, "localhost", "127.0.0.1"), ClientEnd::kComplete) << "the name is checked";
  EXPECT_EQ(end(own, "other.test", "127.0.0.1"), ClientEnd::kNoConnection);
}

TEST(HttpClient, ConnectsToTheAddressAndKeepsTheName) {
  const auto answer = [](int socket, const std::string&) {
    send_text(socket, http_reply(200, ""));
  };
  LocalServer one(answer);
  LocalServer other(answer, "127.0.0.2", one.port());
  HttpClient client;
  const std::string host = "models.test:" + std::to_string(one.port());
  for (const char* const address : {"127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.3"}) {
    Listener heard;
    ClientRequest request{.method = "GET", .head_until = Clock::now() + std::chrono::minutes(1)};
    request.url = "http://" + host + "/health";
    request.address = address;
    client.start(client.make_id(), request, heard.events());
    const bool is_there = std::string_view(address) != "127.0.0.3";
    EXPECT_EQ(heard.wait_end(), is_there ? ClientEnd::kComplete : ClientEnd::kNoConnection);
  }
  EXPECT_EQ(one.heads().size(), 2U);
  EXPECT_EQ(other.heads().size(), 1U);
  EXPECT_THAT(other.heads().at(0), testing::HasSubstr("\r\nHost: " + host + "\r\n"));
}

TEST(HttpClient, ConnectsToAnAddressOfIpv6) {
  HttpOptions options = fovea::test::loopback();
  options.host = "::1";
  std::optional<fovea::test::TestServer> server;
  try {
    server.emplace(options);
  } catch (const Error&) {
    GTEST_SKIP() << "this machine has no ::1";
  }
  Listener heard;
  HttpClient client;
  ClientRequest request{.method = "GET", .head_until = Clock::now() + std::chrono::minutes(1)};
  request.url = "http://models.test:" + std::to_string(server->server->port()) + "/health";
  request.address = "::1";
  client.start(client.make_id(), request, heard.events());
  EXPECT_EQ(heard.wait_end(), ClientEnd::kComplete);
}

TEST(HttpClient, Stops) {
  std::atomic<bool> has_closed = false;
  LocalServer server([&](int socket, const std::string&) {
    wait_for_close(socket);
    has_closed = true;
  });
  Asked asked(get(server));
  asked.client.stop(asked.id);
  EXPECT_EQ(asked.heard.wait_end(), ClientEnd::kStopped);
  asked.client.stop(asked.id);  // means nothing any more
  asked.client.resume(asked.id);

  Listener heard;
  {
    HttpClient client;
    client.start(client.make_id(), get(server), heard.events());
  }
  EXPECT_EQ(heard.wait_end(), ClientEnd::kStopped) << "with the client";
}

TEST(HttpClient, SendsAPostOnce) {
  // The second request of a connection ends without an answer.
  std::atomic<int> posts = 0;
  LocalServer server([&](int socket, const std::string& head) {
    read_body(socket, head);
    if (head.starts_with("GET")) {
      send_text(socket, http_reply(200, "ok"));
      char byte = 0;
      if (recv(socket, &byte, 1, 0) == 1) ++posts;
      return;
    }
    ++posts;
  });
  HttpClient client;
  Listener first;
  client.start(client.make_id(), get(server), first.events());
  EXPECT_EQ(first.wait_end(), ClientEnd::kComplete);
  Listener second;
  client.start(client.make_id(), post(server, {body_part(std::string("x"))}), second.events());
  EXPECT_EQ(second.wait_end(), ClientEnd::kNoAnswer);
  EXPECT_EQ(posts, 1);
}

}  // namespace
}  // namespace fovea::serve
