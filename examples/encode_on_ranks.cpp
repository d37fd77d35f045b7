// One process of several that encode together: every rank ends with all rows. Started once for
// each:
//   encode_on_ranks MODEL RANK SIZE file:///PATH IMAGE...
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "fovea/fovea.h"

namespace {

void run(std::span<char*> arguments) {
  const std::unique_ptr<fovea::Communicator> ranks =
      fovea::connect_ranks({.rank = std::atoi(arguments[1]),
                            .size = std::atoi(arguments[2]),
                            .rendezvous = arguments[3]});
  fovea::Engine engine = fovea::Engine::load(arguments[0]);  // on the device of this rank
  std::vector<fovea::MediaItem> items;                       // the same on all ranks
  for (const char* image : arguments.subspan(4)) items.push_back(fovea::image_file(image));

  const std::vector<fovea::Embedding> rows = fovea::encode_on_ranks(engine, *ranks, items);

  for (const fovea::Embedding& item : rows) {
    std::printf("rank %d of %d: %s, %lld rows\n", ranks->rank(), ranks->size(), item.name.c_str(),
                static_cast<long long>(item.rows));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: encode_on_ranks MODEL RANK SIZE file:///PATH IMAGE...\n");
    return 2;
  }
  try {
    run(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
