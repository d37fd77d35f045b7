// Where ranks meet: what the texts mean, and files that others left.
#include "ranks/transport/address.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::ranks {
namespace {

using std::chrono::milliseconds;

TEST(RankAddress, NamesAFileOrAPort) {
  const Address file = parse_address("file:///run/ranks");
  EXPECT_TRUE(file.is_file());
  EXPECT_EQ(file.path, "/run/ranks");
  const Address tcp = parse_address("tcp://node-0:5000");
  EXPECT_FALSE(tcp.is_file());
  EXPECT_EQ(tcp.host, "node-0");
  EXPECT_EQ(tcp.port, "5000");
  EXPECT_EQ(parse_address("tcp://[::1]:5000").host, "::1");
}

TEST(RankAddress, IsNothingElse) {
  for (const std::string text :
       {"", "file://", "file://relative", "/run/ranks", "tcp://", "tcp://:1", "tcp://host",
        "tcp://host:", "tcp://host:http", "tcp://h:123456", "tcp:/", "udp://host:1"}) {
    test::expect_error(ErrorCode::kInvalidArgument, "expected file:///PATH or tcp://HOST:PORT",
                       [&] { (void)parse_address(text); });
  }
}

TEST(RankAddress, HasAPathThatFits) {
  const Address address = parse_address("file:///" + std::string(200, 'x'));
  test::expect_error(ErrorCode::kInvalidArgument, "a path may have 107 bytes, got 201",
                     [&] { const Listener listener(address); });
}

TEST(RankListener, RemovesItsFile) {
  const test::TemporaryDirectory folder;
  const Address address = parse_address("file://" + folder / "ranks");
  {
    const Listener listener(address);
    EXPECT_EQ(folder.entries(), 1U);
    EXPECT_TRUE(connect(address, Clock::now()).is_open());
  }
  EXPECT_EQ(folder.entries(), 0U);
  EXPECT_FALSE(connect(address, Clock::now()).is_open());
}

TEST(RankListener, TakesThePlaceOfADeadOneOnly) {
  const test::TemporaryDirectory folder;
  const Address address = parse_address("file://" + folder / "ranks");
  const Listener first(address);
  test::expect_error(ErrorCode::kInvalidArgument, "another group meets there",
                     [&] { const Listener second(address); });
  // What a process leaves that is killed: the file without the socket.
  std::filesystem::rename(address.path, folder / "moved");
  const std::string other = folder / "left";
  {
    const Listener left(parse_address("file://" + other));
    std::filesystem::create_hard_link(other, folder / "kept");
  }
  std::filesystem::rename(folder / "kept", other);
  EXPECT_NO_THROW(const Listener again(parse_address("file://" + other)));
}

TEST(RankListener, IsLeftAloneWhileItBegins) {
  const test::TemporaryDirectory folder;
  const Address address = parse_address("file://" + folder / "ranks");
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::ranges::copy(address.path, name.sun_path);
  ASSERT_EQ(bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  const std::jthread begins([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(listen(socket.get(), 1), 0);
  });
  remove_stale(address);
  EXPECT_TRUE(connect(address, Clock::now() + std::chrono::seconds(60)).is_open());
}

TEST(RankListener, LeavesOtherFilesAlone) {
  const test::TemporaryDirectory folder;
  const Address address = parse_address("file://" + folder / "notes");
  test::write_text(address.path, "mine");
  test::expect_error(ErrorCode::kInvalidArgument, "there is another file",
                     [&] { const Listener listener(address); });
  remove_stale(address);
  EXPECT_EQ(test::read_text(address.path), "mine");
}

TEST(Address, IsLocalWhereNoOtherHostComes) {
  for (const char* text : {"file:///tmp/ranks", "tcp://127.0.0.1:1", "tcp://127.3.2.1:1",
                           "tcp://[::1]:1", "tcp://localhost:1"}) {
    EXPECT_TRUE(is_local(parse_address(text))) << text;
  }
  for (const char* text :
       {"tcp://0.0.0.0:1", "tcp://[::]:1", "tcp://10.0.0.1:1", "tcp://128.0.0.1:1",
        "tcp://[::ffff:10.0.0.1]:1", "tcp://nobody.invalid:1"}) {
    EXPECT_FALSE(is_local(parse_address(text))) << text;
  }
}

}  // namespace
}  // namespace fovea::ranks
