#include "serve/http/listener.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <vector>

namespace fovea::serve {
namespace {

/// A connection that waits to be accepted.
FileDescriptor connected(std::uint16_t port) {
  FileDescriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return client;
}

TEST(Listener, LetsOthersHaveTheirTurnBetweenConnections) {
  constexpr int kClients = 5 * Listener::kBatch;
  asio::io_context context(1);
  ListeningSocket listening = listen_tcp("127.0.0.1", 0);
  Connections connections(2 * kClients);
  int accepted = 0;
  Listener listener(
      context, std::move(listening.descriptor), connections,
      [&](const Accepted&, const std::shared_ptr<ConnectionPlace>&) { ++accepted; }, [] {},
      nullptr);
  std::vector<FileDescriptor> clients;
  for (int i = 0; i < kClients; ++i) clients.push_back(connected(listening.port));
  listener.start();
  int turns_of_others = 0;
  const std::function<void()> other = [&] {
    ++turns_of_others;
    if (accepted < kClients) asio::post(context, other);
  };
  asio::post(context, other);
  while (accepted < kClients) {
    const int before = accepted;
    context.run_one();
    EXPECT_LE(accepted - before, Listener::kBatch);
  }
  EXPECT_GE(turns_of_others, kClients / Listener::kBatch);
  listener.close();
  context.run();
}

}  // namespace
}  // namespace fovea::serve
