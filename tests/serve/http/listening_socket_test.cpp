#include "serve/http/listening_socket.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "fovea/error.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::serve {
namespace {

using fovea::test::TemporaryDirectory;

FileDescriptor connected_tcp(std::uint16_t port) {
  FileDescriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return client;
}

FileDescriptor connected_unix(const std::string& path) {
  FileDescriptor client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return client;
}

TEST(ListenTcp, TakesAFreePortAndSaysWhoConnects) {
  const ListeningSocket listening = listen_tcp("127.0.0.1", 0);
  EXPECT_GT(listening.port, 0);
  int error = 0;
  EXPECT_FALSE(accept_from(listening.descriptor.get(), error).descriptor.is_open());
  EXPECT_TRUE(error == EAGAIN || error == EWOULDBLOCK) << "accept() does not wait";
  const FileDescriptor client = connected_tcp(listening.port);
  const Accepted accepted = accept_from(listening.descriptor.get(), error);
  EXPECT_EQ(error, 0);
  EXPECT_EQ(accepted.family, AF_INET);
  EXPECT_EQ(accepted.peer, "127.0.0.1");
  EXPECT_EQ(accepted.client, "127.0.0.1");
  EXPECT_FALSE(accepted.is_own_user) << "an address says nothing of a user";
}

TEST(ListenTcp, NamesTheAddressThatIsInUse) {
  const ListeningSocket first = listen_tcp("127.0.0.1", 0);
  const std::string address = "127.0.0.1:" + std::to_string(first.port);
  fovea::test::expect_error(ErrorCode::kIo, address,
                            [&] { (void)listen_tcp("127.0.0.1", first.port); });
}

TEST(MakeSocket, NamesTheReasonWhereThereIsNone) {
  const TemporaryDirectory folder;
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  // A sanitizer opens a pipe where it sees a type for the first time.
  fovea::test::expect_error(ErrorCode::kIo, "no socket", [&] { (void)listen_unix(folder.path()); });
  const std::string reason = std::generic_category().message(EMFILE);
  const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  fovea::test::expect_error(ErrorCode::kIo, reason, [] { (void)listen_tcp("127.0.0.1", 0); });
  fovea::test::expect_error(ErrorCode::kIo, reason,
                            [&] { (void)listen_unix(folder.path() + "/socket"); });
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(ListenUnix, KnowsItsOwnUser) {
  const TemporaryDirectory folder;
  const std::string path = folder / "socket";
  const ListeningSocket listening = listen_unix(path);
  EXPECT_EQ(listening.port, 0);
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0660U);
  const FileDescriptor client = connected_unix(path);
  int error = 0;
  const Accepted accepted = accept_from(listening.descriptor.get(), error);
  EXPECT_EQ(error, 0);
  EXPECT_EQ(accepted.peer, "unix");
  EXPECT_TRUE(accepted.is_own_user);
}

TEST(ListenUnix, ReplacesASocketWithoutAListenerOnly) {
  const TemporaryDirectory folder;
  const std::string path = folder / "socket";
  { const ListeningSocket gone = listen_unix(path); }
  const ListeningSocket second = listen_unix(path);
  fovea::test::expect_error(ErrorCode::kIo, path, [&] { (void)listen_unix(path); });
  const std::string file = folder / "file";
  fovea::test::write_text(file, "text");
  fovea::test::expect_error(ErrorCode::kIo, "no socket", [&] { (void)listen_unix(file); });
  EXPECT_TRUE(std::filesystem::exists(file));
  const std::string long_path = folder / std::string(200, 'x');
  fovea::test::expect_error(ErrorCode::kIo, "at most", [&] { (void)listen_unix(long_path); });
}

TEST(SocketPath, RemovesItsOwnSocketOnly) {
  const TemporaryDirectory folder;
  const std::string path = folder / "socket";
  {
    const ListeningSocket listening = listen_unix(path);
    const SocketPath owner(path);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  const ListeningSocket first = listen_unix(path);
  {
    const SocketPath owner(path);
    std::filesystem::rename(path, folder / "kept");  // its inode is not free for the next
    const ListeningSocket second = listen_unix(path);
  }
  EXPECT_TRUE(std::filesystem::exists(path)) << "another socket has taken the place";
  SocketPath one(path);
  { const SocketPath moved = std::move(one); }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace fovea::serve
