// The same server, encrypted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "fovea/error.h"
#include "support/temporary_directory.h"
#include "test_server.h"
#include "tls_files.h"

namespace fovea::serve {
namespace {

using std::chrono::milliseconds;
using test::get;
using test::Identity;
using test::post;
using test::RawClient;
using test::TestServer;
using test::TlsClient;
using testing::EndsWith;
using testing::HasSubstr;

class ServerTls : public testing::Test {
 protected:
  ServerTls() {
    server_identity_.write_certificate(directory_ / "cert.pem");
    server_identity_.write_key(directory_ / "key.pem");
    client_identity_.write_certificate(directory_ / "clients.pem");
    options_.tls = TlsFiles{.certificate = directory_ / "cert.pem",
                            .key = directory_ / "key.pem",
                            .client_ca = {},
                            .require_client_cert = false};
  }
  void ask_clients(bool require) {
    options_.tls->client_ca = directory_ / "clients.pem";
    options_.tls->require_client_cert = require;
  }
  [[nodiscard]] std::string refusal() const {
    try {
      TestServer tested(options_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "made";
  }
  /// What a client gets that shows `identity`.
  static std::string health(TestServer& tested, const Identity* identity) {
    const RawClient socket = tested.connect();
    return TlsClient(socket.descriptor(), identity).ask(get("/health"), "ok");
  }

  test::TemporaryDirectory directory_;
  Identity server_identity_{"server"};
  Identity client_identity_{"client"};
  HttpOptions options_ = test::loopback();
};

TEST_F(ServerTls, AnswersManyRequestsOnAConnection) {
  TestServer tested(options_);
  EXPECT_THAT(tested.server->address(), testing::StartsWith("https://127.0.0.1:"));
  const RawClient socket = tested.connect();
  TlsClient client(socket.descriptor());
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(client.ask(get("/health"), "\r\n\r\nok"), EndsWith("\r\n\r\nok"));
    EXPECT_THAT(client.ask(post("/echo", "body"), "body"), EndsWith("\r\n\r\nbody"));
  }
  EXPECT_EQ(tested.server->stats().accepted, 1);
}

TEST_F(ServerTls, CarriesLargeBodies) {
  TestServer tested(options_);
  const RawClient socket = tested.connect();
  TlsClient client(socket.descriptor());
  const std::string body = std::string(3 << 20, 'x') + "end";
  EXPECT_THAT(client.ask(post("/echo", body), "end"), EndsWith(body));
  const std::string big = client.ask(get("/big", "Connection: close\r\n"), "no such end");
  EXPECT_GT(big.size(), std::size_t{64} << 20);
}

TEST_F(ServerTls, SaysGoodbye) {
  TestServer tested(options_);
  const RawClient socket = tested.connect();
  TlsClient client(socket.descriptor());
  EXPECT_THAT(client.ask(get("/health", "Connection: close\r\n"), "no such end"), EndsWith("ok"));
  EXPECT_TRUE(client.was_shut());
  EXPECT_TRUE(tested.wait_idle());
}

TEST_F(ServerTls, SaysGoodbyeToClientsThatAskNothingMore) {
  options_.keep_alive_timeout = milliseconds(50);
  TestServer tested(options_);
  const RawClient socket = tested.connect();
  TlsClient client(socket.descriptor());
  EXPECT_THAT(client.ask(get("/health"), "no such end"), EndsWith("ok"));
  EXPECT_TRUE(client.was_shut());
  EXPECT_TRUE(tested.wait_idle());
}

TEST_F(ServerTls, SaysGoodbyeBehindWholeRepliesAlone) {
  TestServer tested(options_);
  for (const bool is_whole : {false, true}) {
    const RawClient socket = tested.connect();
    TlsClient client(socket.descriptor());
    ASSERT_TRUE(client.send("GET /stream HTTP/1.0\r\n\r\n"));
    const auto stream = tested.wait_stream();
    ASSERT_TRUE(stream->put("abc"));
    stream->end(is_whole);
    EXPECT_THAT(client.receive_until("no such end"), EndsWith("\r\n\r\nabc"));
    EXPECT_EQ(client.was_shut(), is_whole) << "all that tells a client of HTTP/1.0";
  }
}

TEST_F(ServerTls, NoticesClientsThatLeave) {
  TestServer tested(options_);
  {
    RawClient socket = tested.connect();
    TlsClient client(socket.descriptor());
    ASSERT_TRUE(client.send(post("/hold", "x")));
    ASSERT_TRUE(tested.wait_held(1));
    ASSERT_TRUE(client.send(get("/health")));  // not a departure
    EXPECT_FALSE(socket.is_readable(50) && tested.server->stats().requests_in_progress == 0);
    socket.close();
  }
  EXPECT_TRUE(tested.wait_gone(1));
  EXPECT_EQ(tested.wait_observed(1).at(0).status, 499);
}

TEST_F(ServerTls, RefusesOldVersions) {
  TestServer tested(options_);
  const RawClient old = tested.connect();
  EXPECT_FALSE(TlsClient(old.descriptor(), nullptr, TLS1_1_VERSION).is_connected());
  const RawClient current = tested.connect();
  EXPECT_TRUE(TlsClient(current.descriptor(), nullptr, TLS1_2_VERSION).is_connected());
}

TEST_F(ServerTls, ClosesOnClientsThatSpeakSomethingElse) {
  options_.header_timeout = milliseconds(100);
  TestServer tested(options_);
  RawClient plain = tested.connect();
  plain.send(get("/health"));
  RawClient silent = tested.connect();
  EXPECT_TRUE(tested.wait_idle());
  EXPECT_TRUE(silent.is_closed());
}

TEST_F(ServerTls, ChecksCertificatesOfClients) {
  ask_clients(true);
  TestServer tested(options_);
  EXPECT_THAT(health(tested, &client_identity_), EndsWith("ok"));
  EXPECT_EQ(health(tested, nullptr), "");
  const Identity stranger("stranger");
  EXPECT_EQ(health(tested, &stranger), "");
}

TEST_F(ServerTls, TakesClientsWithoutACertificateIfItNeedNone) {
  ask_clients(false);
  TestServer tested(options_);
  EXPECT_THAT(health(tested, nullptr), EndsWith("ok"));
  EXPECT_THAT(health(tested, &client_identity_), EndsWith("ok"));
  const Identity stranger("stranger");
  EXPECT_EQ(health(tested, &stranger), "");
}

TEST_F(ServerTls, ReadsItsCertificateAgain) {
  TestServer tested(options_);
  const RawClient socket = tested.connect();
  TlsClient before(socket.descriptor());
  EXPECT_EQ(before.server_name(), "server");
  const Identity renewed("renewed");
  renewed.write_certificate(directory_ / "cert.pem");
  EXPECT_THROW(tested.server->use_tls(read_tls(*options_.tls)), Error);  // not that of the key
  const RawClient second = tested.connect();
  EXPECT_EQ(TlsClient(second.descriptor()).server_name(), "server");
  renewed.write_key(directory_ / "key.pem");
  tested.server->use_tls(read_tls(*options_.tls));
  const RawClient third = tested.connect();
  EXPECT_EQ(TlsClient(third.descriptor()).server_name(), "renewed");
  EXPECT_THAT(before.ask(get("/health"), "ok"), EndsWith("ok"));
}

TEST_F(ServerTls, NamesFilesThatAreOfNoUse) {
  options_.tls->certificate = directory_ / "none.pem";
  EXPECT_THAT(refusal(), HasSubstr("none.pem"));
  options_.tls->certificate = directory_ / "key.pem";
  EXPECT_THAT(refusal(), HasSubstr("key.pem"));
  options_.tls->certificate = directory_ / "clients.pem";
  EXPECT_THAT(refusal(), HasSubstr("mismatch"));
  options_.tls->certificate = directory_ / "cert.pem";
  options_.tls->key = directory_ / "none.pem";
  EXPECT_THAT(refusal(), HasSubstr("none.pem"));
  server_identity_.write_key(directory_ / "locked.pem", "secret");
  options_.tls->key = directory_ / "locked.pem";
  EXPECT_THAT(refusal(), HasSubstr("locked.pem"));
  options_.tls->key = directory_ / "key.pem";
  options_.tls->require_client_cert = true;
  EXPECT_THAT(refusal(), HasSubstr("who signs them"));
  options_.tls->client_ca = directory_ / "none.pem";
  EXPECT_THAT(refusal(), HasSubstr("none.pem"));
}

TEST_F(ServerTls, WaitsForNoFile) {
  const std::string pipe = directory_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const TlsFiles good = *options_.tls;
  for (std::string TlsFiles::*file :
       {&TlsFiles::certificate, &TlsFiles::key, &TlsFiles::client_ca}) {
    for (const std::string& path : {pipe, std::string("/dev/zero")}) {
      options_.tls = good;
      (*options_.tls).*file = path;
      EXPECT_THAT(refusal(), HasSubstr(path + ": not a regular file"));
    }
  }
}

TEST_F(ServerTls, TrustsAllWhoAreNamed) {
  const Identity other("other");
  other.write_certificate(directory_ / "other.pem");
  test::write_text(directory_ / "clients.pem", test::read_text(directory_ / "clients.pem") +
                                                   test::read_text(directory_ / "other.pem"));
  ask_clients(true);
  TestServer tested(options_);
  EXPECT_THAT(health(tested, &client_identity_), EndsWith("ok"));
  EXPECT_THAT(health(tested, &other), EndsWith("ok"));
}

TEST(ServerWithoutTls, TakesNone) {
  TestServer tested;
  EXPECT_NO_THROW(tested.server->use_tls({}));
}

}  // namespace
}  // namespace fovea::serve
