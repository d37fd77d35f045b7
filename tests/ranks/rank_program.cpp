// A rank in a process of its own:
//   fovea_rank_program RANK SIZE RENDEZVOUS LIMIT_MS ITEMS END [MODEL...]
// encodes ITEMS mixed items of each model together with the other ranks, and prints what came of
// it. END says where the process ends by a signal:
//   never, connected, encode, gather-N (in the N-th gather of the first call, from 0);
//   hang (it does not end, but stays in encode)
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "fovea/fovea.h"
#include "ranks/mixed_items.h"
#include "ranks/watched_communicator.h"

namespace fovea::test {
namespace {

void end_here() { (void)std::raise(SIGKILL); }

struct Arguments {
  RankOptions options;
  std::size_t num_items = 0;
  std::string end;
  std::string model;
};

void encode(const Arguments& arguments, Communicator& ranks) {
  const auto progress = [&](std::int64_t, std::int64_t) {
    if (arguments.end == "encode") end_here();
    if (arguments.end == "hang") pause();
  };
  Engine engine = Engine::load(arguments.model, {.device = "cpu", .num_threads = 1});
  const std::vector<MediaItem> items = mixed_items(engine.report(), 7, arguments.num_items);
  for (const std::string& text :
       texts_of(encode_on_ranks(engine, ranks, items, {.progress = progress}))) {
    std::cout << text << '\n';
  }
}

void run(const Arguments& arguments) {
  WatchedCommunicator ranks(connect_ranks(arguments.options), [&](int gather) {
    if (arguments.end == cat("gather-", gather)) end_here();
  });
  if (arguments.end == "connected") end_here();
  encode(arguments, ranks);
}

}  // namespace
}  // namespace fovea::test

int main(int argc, char** argv) {
  if (argc != 8) return 2;
  const fovea::test::Arguments arguments{
      .options = {.rank = std::atoi(argv[1]),
                  .size = std::atoi(argv[2]),
                  .rendezvous = argv[3],
                  .time_limit = std::chrono::milliseconds(std::atoi(argv[4]))},
      .num_items = static_cast<std::size_t>(std::atoi(argv[5])),
      .end = argv[6],
      .model = argv[7]};
  try {
    fovea::test::run(arguments);
  } catch (const fovea::Error& error) {
    std::cout << "error " << to_string(error.code()) << ": " << error.what() << '\n';
  }
}
