// How processes find each other: here threads that connect as processes do.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <thread>

#include "fovea/communicator.h"
#include "ranks/group/rendezvous.h"
#include "ranks/thread_group.h"
#include "ranks/transport/address.h"
#include "ranks/transport/message.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

using std::chrono::milliseconds;

/// A port of this host that nobody uses at the moment.
std::string free_port() {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  EXPECT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&name), size), 0);
  EXPECT_EQ(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
  return std::to_string(ntohs(name.sin_port));
}

/// Connects ranks with these options at once. @param group receives those that succeeded.
std::vector<std::optional<Error>> connect_all(const std::vector<RankOptions>& options,
                                              std::vector<std::unique_ptr<Communicator>>& group) {
  std::vector<std::optional<Error>> errors(options.size());
  group.resize(options.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < options.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        group[i] = connect_ranks(options[i]);
      } catch (const Error& error) {
        errors[i] = error;
      }
    });
  }
  threads.clear();
  return errors;
}

std::vector<RankOptions> options_of(int size, const std::string& rendezvous,
                                    milliseconds limit = milliseconds(20'000)) {
  std::vector<RankOptions> options;
  options.reserve(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) options.push_back({rank, size, rendezvous, limit});
  return options;
}

class Connect : public ::testing::Test {
 protected:
  void expect_that_ranks_gather(int size, const std::string& rendezvous) {
    std::vector<std::unique_ptr<Communicator>> group;
    for (const auto& error : connect_all(options_of(size, rendezvous), group)) {
      ASSERT_FALSE(error) << error->what();
    }
    EXPECT_EQ(folder_.entries(), 0U);
    (void)test::on_ranks(group, [&](Communicator& ranks) {
      const std::vector<std::byte> mine(3'000'000, static_cast<std::byte>(ranks.rank()));
      std::vector<std::byte> all(mine.size() * static_cast<std::size_t>(size));
      ranks.all_gather(mine, all);
      for (int rank = 0; rank < size; ++rank) {
        const auto part =
            std::span(all).subspan(mine.size() * static_cast<std::size_t>(rank), 3'000'000);
        EXPECT_TRUE(std::ranges::all_of(part, [&](auto b) { return b == std::byte(rank); }));
      }
    });
  }

  test::TemporaryDirectory folder_;
  std::string file_ = "file://" + folder_ / "ranks";
};

TEST_F(Connect, MeetsAtAFileAgainAndAgain) {
  for (const int size : {2, 4, 3}) expect_that_ranks_gather(size, file_);
}

TEST_F(Connect, MeetsAtAPort) {
  for (const int size : {2, 4}) expect_that_ranks_gather(size, "tcp://127.0.0.1:" + free_port());
}

TEST_F(Connect, NeedsNoPlaceForOneRank) {
  const auto alone = connect_ranks({});
  EXPECT_EQ(alone->size(), 1);
  alone->all_gather({}, {});
}

TEST_F(Connect, TellsAllWhoIsMissing) {
  std::vector<RankOptions> options = options_of(4, file_, milliseconds(300));
  options.erase(options.begin() + 2);
  std::vector<std::unique_ptr<Communicator>> group;
  for (const auto& error : connect_all(options, group)) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kDeadline);
    EXPECT_EQ(error->what(), "rank 2 did not come to " + file_ + " within 300 ms");
  }
  EXPECT_EQ(folder_.entries(), 0U);
}

TEST_F(Connect, SaysThatRank0IsMissing) {
  test::expect_error(ErrorCode::kDeadline, "rank 0 did not come to " + file_ + " within 50 ms",
                     [&] {
                       (void)connect_ranks({1, 2, file_, milliseconds(50)});
                     });
}

TEST_F(Connect, RefusesRanksThatContradictEachOther) {
  std::vector<std::unique_ptr<Communicator>> group;
  std::vector<RankOptions> twice = options_of(3, file_);
  twice[2].rank = 1;
  for (const auto& error : connect_all(twice, group)) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->what(), "two processes came to " + file_ + " as rank 1");
  }
  std::vector<RankOptions> sizes = options_of(2, file_);
  sizes[1].size = 3;
  for (const auto& error : connect_all(sizes, group)) {
    ASSERT_TRUE(error);
    EXPECT_STREQ(error->what(), "rank 0 belongs to 2 ranks, rank 1 to 3");
  }
  test::expect_error(ErrorCode::kInvalidArgument, "a rank must be in [0, 2), got 2", [&] {
    (void)connect_ranks({2, 2, file_});
  });
}

TEST_F(Connect, TellsAllThatARankEndedMeanwhile) {
  const ranks::Address address = ranks::parse_address(file_);
  std::jthread ended([&] {
    const FileDescriptor socket =
        ranks::connect(address, ranks::Clock::now() + milliseconds(20'000));
    ranks::shake_hands(socket.get(), {2, 3, file_}, "", ranks::Clock::now() + milliseconds(20'000));
  });
  test::expect_error(ErrorCode::kUnavailable, "rank 2 has ended", [&] {
    (void)connect_ranks({0, 3, file_});
  });
  EXPECT_EQ(folder_.entries(), 0U);
}

TEST_F(Connect, IgnoresStrangers) {
  const std::string port = free_port();
  const std::string rendezvous = "tcp://127.0.0.1:" + port;
  std::jthread stranger([&] {
    const FileDescriptor socket = ranks::connect(ranks::parse_address(rendezvous),
                                                 ranks::Clock::now() + milliseconds(20'000));
    const std::string request(64, 'x');
    (void)ranks::send_all(socket.get(), std::as_bytes(std::span(request)), ranks::Clock::now());
    const auto one = connect_ranks({1, 2, rendezvous});
    one->all_gather({}, {});
  });
  const auto zero = connect_ranks({0, 2, rendezvous});
  zero->all_gather({}, {});
}

/// Connections to a port that say nothing, or the beginning of something.
std::vector<FileDescriptor> strangers(const std::string& rendezvous, int count) {
  std::vector<FileDescriptor> sockets;
  const ranks::Address address = ranks::parse_address(rendezvous);
  for (int i = 0; i < count; ++i) {
    sockets.push_back(ranks::connect(address, ranks::Clock::now() + milliseconds(20'000)));
    const ranks::Message hello{.rank = 1, .size = 2};
    const auto beginning = ranks::bytes_of(hello).first(static_cast<std::size_t>(i) % 8);
    EXPECT_EQ(ranks::send_all(sockets.back().get(), beginning, ranks::Clock::now()),
              Transfer::kDone);
  }
  return sockets;
}

TEST_F(Connect, KeepsItsTimeLimitWhileOthersAreSilent) {
  const std::string rendezvous = "tcp://127.0.0.1:" + free_port();
  std::vector<FileDescriptor> silent;
  std::jthread scanner([&] { silent = strangers(rendezvous, 12); });
  const auto begin = ranks::Clock::now();
  test::expect_error(ErrorCode::kDeadline, "rank 1 did not come to " + rendezvous + " within 2000",
                     [&] {
                       (void)connect_ranks({0, 2, rendezvous, milliseconds(2'000)});
                     });
  // One after the other they would have been listened to for a minute.
  EXPECT_LT(ranks::Clock::now() - begin, std::chrono::seconds(30));
}

TEST_F(Connect, WaitsAtRestForADescriptor) {
  const ranks::Address address = ranks::parse_address("file://" + folder_ / "ranks");
  const ranks::Listener listener(address);
  const FileDescriptor waits = ranks::connect(address, ranks::Clock::now());
  ASSERT_TRUE(waits.is_open());
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit few{.rlim_cur = 256, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<FileDescriptor> others;
  do others.emplace_back(dup(waits.get()));
  while (others.back().is_open());
  const RankOptions options{0, 2, "file://" + folder_ / "ranks", milliseconds(300)};
  const auto rests = [] {
    rusage usage{};
    EXPECT_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
    // How often the thread has let go of its processor.
    return usage.ru_nvcsw;  // NOLINT(cppcoreguidelines-pro-type-union-access): so is glibc's
  };
  const auto before = rests();
  test::expect_error(ErrorCode::kDeadline, "rank 1 did not come",
                     [&] { (void)ranks::Rendezvous(options, "").accept_all(listener); });
  const auto num_rests = rests() - before;
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_GE(num_rests, 5) << "it asked again and again";
}

TEST_F(Connect, ListensToRanksWhileOthersAreSilent) {
  const std::string rendezvous = "tcp://127.0.0.1:" + free_port();
  const auto begin = ranks::Clock::now();
  std::jthread late([&] {
    const std::vector<FileDescriptor> silent = strangers(rendezvous, 300);  // more than are kept
    const auto one = connect_ranks({1, 2, rendezvous, milliseconds(60'000)});
    one->all_gather({}, {});
  });
  const auto zero = connect_ranks({0, 2, rendezvous, milliseconds(60'000)});
  zero->all_gather({}, {});
  EXPECT_LT(ranks::Clock::now() - begin, std::chrono::seconds(30));
}

/// Ranks with a secret of their own each, "" for none.
std::vector<RankOptions> with_secrets(std::vector<RankOptions> options,
                                      const test::TemporaryDirectory& folder,
                                      const std::vector<std::string>& secrets) {
  for (std::size_t rank = 0; rank < options.size(); ++rank) {
    if (secrets[rank].empty()) continue;
    options[rank].secret_file = folder / ("secret-" + std::to_string(rank));
    test::write_text(options[rank].secret_file, secrets[rank] + "\n");
  }
  return options;
}

const std::string kSecret = "a secret of a group";
const std::string kOther = "that of another one";

TEST_F(Connect, MeetsWithASecret) {
  const test::TemporaryDirectory secrets;
  for (const std::string& rendezvous : {"tcp://127.0.0.1:" + free_port(), file_}) {
    std::vector<std::unique_ptr<Communicator>> group;
    for (const auto& error :
         connect_all(with_secrets(options_of(3, rendezvous), secrets, {kSecret, kSecret, kSecret}),
                     group)) {
      ASSERT_FALSE(error) << error->what();
    }
  }
}

TEST_F(Connect, LetsNobodyInWithoutTheSecret) {
  const test::TemporaryDirectory secrets;
  for (const std::string& wrong : {std::string(), kOther}) {
    const std::string rendezvous = "tcp://127.0.0.1:" + free_port();
    std::vector<std::unique_ptr<Communicator>> group;
    const auto errors = connect_all(
        with_secrets(options_of(2, rendezvous, milliseconds(2'000)), secrets, {kSecret, wrong}),
        group);
    ASSERT_TRUE(errors[0] && errors[1]);
    EXPECT_EQ(errors[0]->code(), ErrorCode::kDeadline) << "it waits for the right one";
    EXPECT_STREQ(errors[1]->what(), "the secret of rank 1 is not that of rank 0");
  }
}

TEST_F(Connect, JoinsNoGroupThatDoesNotKnowTheSecret) {
  const test::TemporaryDirectory secrets;
  const std::string rendezvous = "tcp://127.0.0.1:" + free_port();
  std::jthread impostor([&] {
    const ranks::Listener listener(ranks::parse_address(rendezvous));
    FileDescriptor rank;
    while (!rank.is_open()) rank = listener.accept();
    ranks::HandshakeMessage incoming;
    const auto soon = ranks::Clock::now() + milliseconds(20'000);
    for (const auto kind : {ranks::MessageKind::kChallenge, ranks::MessageKind::kProof}) {
      const auto bytes = std::as_writable_bytes(std::span(&incoming, 1));
      EXPECT_EQ(ranks::receive_all(rank.get(), bytes, soon), Transfer::kDone);
      incoming.message.kind = kind;
      EXPECT_EQ(ranks::send_all(rank.get(), ranks::bytes_of(incoming), soon), Transfer::kDone);
    }
  });
  const auto options = with_secrets(options_of(2, rendezvous), secrets, {kSecret, kSecret});
  test::expect_error(ErrorCode::kInvalidArgument, "does not know the secret of this rank",
                     [&] { (void)connect_ranks(options[1]); });
}

TEST_F(Connect, NeedsASecretWhereOtherHostsMayCome) {
  for (const int rank : {0, 1}) {
    test::expect_error(ErrorCode::kInvalidArgument, "expected a secret", [&] {
      (void)connect_ranks({rank, 2, "tcp://0.0.0.0:" + free_port(), milliseconds(100)});
    });
  }
}

TEST_F(Connect, RefusesSecretsThatAreNone) {
  const test::TemporaryDirectory secrets;
  const std::string rendezvous = "tcp://127.0.0.1:" + free_port();
  const auto options = with_secrets(options_of(1, rendezvous), secrets, {"too short"});
  test::expect_error(
      ErrorCode::kInvalidArgument, "expected a secret of at least 16 bytes, got 9", [&] {
        (void)connect_ranks({0, 2, rendezvous, milliseconds(100), options[0].secret_file});
      });
  test::expect_error(ErrorCode::kNotFound, "absent: no such file", [&] {
    (void)connect_ranks({0, 2, rendezvous, milliseconds(100), secrets / "absent"});
  });
}

TEST_F(Connect, TakesASecretOfTheEnvironment) {
  const std::string rendezvous = "tcp://127.0.0.1:" + free_port();
  setenv("FOVEA_RANKS_SECRET", kSecret.c_str(), 1);
  const test::TemporaryDirectory secrets;
  auto options =
      with_secrets(options_of(2, rendezvous, milliseconds(2'000)), secrets, {"", kOther});
  std::vector<std::unique_ptr<Communicator>> group;
  const auto refused = connect_all(options, group);
  options = with_secrets(options_of(2, rendezvous), secrets, {"", kSecret});
  const auto joined = connect_all(options, group);
  unsetenv("FOVEA_RANKS_SECRET");
  EXPECT_TRUE(refused[0] && refused[1]);
  EXPECT_FALSE(joined[0] || joined[1]);
}

}  // namespace
}  // namespace fovea
