#include "serve/http/connections.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace fovea::serve {
namespace {

TEST(Clients, AreTheSameAsLongAsSomebodyHoldsThem) {
  Clients clients;
  std::shared_ptr<Client> one = clients.find("10.0.0.1");
  EXPECT_EQ(clients.find("10.0.0.1"), one);
  EXPECT_NE(clients.find("10.0.0.2"), one);
  EXPECT_EQ(one->name, "10.0.0.1");
  one->body_bytes = 7;
  one.reset();
  EXPECT_EQ(clients.find("10.0.0.1")->body_bytes, 0);
}

TEST(Clients, ForgetThoseThatHaveGone) {
  Clients clients;
  const std::shared_ptr<Client> stays = clients.find("stays");
  for (int i = 0; i < 10'000; ++i) EXPECT_NE(clients.find(std::to_string(i)), nullptr);
  EXPECT_LE(clients.size(), 100U);
  EXPECT_EQ(clients.find("stays"), stays);
}

TEST(Clients, AreWhoARequestIsOf) {
  RequestHead head;
  EXPECT_EQ(client_name(head), "");
  Clients clients;
  head.client = clients.find("10.0.0.1");
  EXPECT_EQ(client_name(head), "10.0.0.1");
}

TEST(Connections, CountPlacesOfAllAndOfEachClient) {
  Connections connections(2);
  int told = 0;
  connections.on_room([&] { ++told; });
  std::shared_ptr<ConnectionPlace> one = connections.take("a");
  EXPECT_FALSE(connections.is_full());
  std::shared_ptr<ConnectionPlace> two = connections.take("a");
  EXPECT_TRUE(connections.is_full());
  EXPECT_EQ(one->client(), two->client());
  EXPECT_EQ(one->client()->connections, 2);
  EXPECT_EQ(told, 0);
  one.reset();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(two->client()->connections, 1);
  two.reset();
  EXPECT_EQ(told, 1);  // there was room already
  EXPECT_EQ(connections.open(), 0);
  EXPECT_EQ(connections.accepted(), 2);
  EXPECT_TRUE(connections.wait_none(std::chrono::milliseconds(0)));
}

TEST(Connections, KnowTheClientThatHasMoreThanHalfOfThem) {
  Connections connections(4);
  std::vector<std::shared_ptr<ConnectionPlace>> many;
  for (int i = 0; i < 2; ++i) many.push_back(connections.take("a"));
  const std::shared_ptr<ConnectionPlace> other = connections.take("b");
  EXPECT_FALSE(many.front()->is_of_a_crowd());
  many.push_back(connections.take("a"));
  EXPECT_TRUE(many.front()->is_of_a_crowd());
  EXPECT_FALSE(other->is_of_a_crowd());
}

}  // namespace
}  // namespace fovea::serve
