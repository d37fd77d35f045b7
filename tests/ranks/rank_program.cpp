// A rank in a process of its own:
//   fovea_rank_program RANK SIZE RENDEZVOUS LIMIT_MS ITEMS END MODEL TO
// encodes ITEMS mixed items of a model together with the other ranks, and prints what came of it.
// Rows go TO "results" or "blocks". END says where the process ends by a signal:
//   never, connected, encode, gather-N (in the N-th gather of the first call, from 0);
//   hang (it does not end, but stays in encode), stop (likewise, with all its threads)
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
  bool to_blocks = false;
};

/// encode_on_ranks with memory of this process for the rows, which the results then get.
std::vector<Embedding> encode_to_blocks(Engine& engine, Communicator& ranks,
                                        std::span<const MediaItem> items,
                                        const EncodeOptions& options) {
  constexpr std::size_t kRows = 1024;
  const auto width = static_cast<std::size_t>(engine.report().width);
  std::vector<std::vector<float>> memory(items.size(), std::vector<float>(kRows * width));
  std::vector<RowBlock> blocks;
  for (std::vector<float>& rows : memory) blocks.push_back({.data = rows.data(), .rows = kRows});
  std::vector<Embedding> results = encode_on_ranks(engine, ranks, items, blocks, {}, options);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto count = static_cast<std::size_t>(results[i].rows) * width;
    results[i].data = RowBytes(std::as_bytes(std::span(memory[i]).first(count)));
  }
  return results;
}

void encode(const Arguments& arguments, Communicator& ranks) {
  const auto progress = [&](std::int64_t, std::int64_t) {
    if (arguments.end == "encode") end_here();
    if (arguments.end == "hang") pause();
    if (arguments.end == "stop") (void)std::raise(SIGSTOP);
  };
  Engine engine = Engine::load(arguments.model, {.device = "cpu", .num_threads = 1});
  const std::vector<MediaItem> items = mixed_items(engine.report(), 7, arguments.num_items);
  const EncodeOptions options{.progress = progress};
  for (const std::string& text :
       texts_of(arguments.to_blocks ? encode_to_blocks(engine, ranks, items, options)
                                    : encode_on_ranks(engine, ranks, items, options))) {
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
  if (argc != 9) return 2;
  const fovea::test::Arguments arguments{
      .options = {.rank = std::atoi(argv[1]),
                  .size = std::atoi(argv[2]),
                  .rendezvous = argv[3],
                  .time_limit = std::chrono::milliseconds(std::atoi(argv[4]))},
      .num_items = static_cast<std::size_t>(std::atoi(argv[5])),
      .end = argv[6],
      .model = argv[7],
      .to_blocks = std::string_view(argv[8]) == "blocks"};
  try {
    fovea::test::run(arguments);
  } catch (const fovea::Error& error) {
    std::cout << "error " << to_string(error.code()) << ": " << error.what() << '\n';
  }
}
