// Calls of all ranks: who encodes what, and everybody's rows on every rank.
#include "fovea/encode_on_ranks.h"

#include <vector>

#include "ranks/call_to_blocks.h"
#include "ranks/description.h"
#include "ranks/rank_call.h"

namespace fovea {

namespace {

/// Rows in host memory of the results.
std::vector<Embedding> encode_to_results(Engine& engine, Communicator& ranks,
                                         std::span<const MediaItem> items,
                                         const EncodeOptions& options) {
  ranks::RankCall call(engine, ranks, items, options);
  call.on_all_ranks([&] {
    call.assign();
    call.encode_share([&](ItemView share, const EncodeOptions& how) {
      return RowGather::encode(engine, share, {}, how);
    });
  });
  call.exchange();
  std::vector<Embedding> results;
  std::vector<ranks::ByteSequence> rows(call.num_ranks());
  call.on_all_ranks([&] {
    results = call.results();
    for (std::size_t rank = 0; rank < rows.size(); ++rank) {
      for (const std::size_t item : call.items_of(rank)) {
        if (rank != call.rank()) results[item].data.resize(ranks::row_bytes(results[item]));
        rows[rank].append(results[item].data);
      }
    }
  });
  ranks::gather_rows(ranks, call.longest_share_bytes(), rows);
  return results;
}

}  // namespace

std::vector<Embedding> encode_on_ranks(Engine& engine, Communicator& ranks,
                                       std::span<const MediaItem> items,
                                       const EncodeOptions& options) {
  return ranks::run_call(ranks, [&] { return encode_to_results(engine, ranks, items, options); });
}

std::vector<Embedding> encode_on_ranks(Engine& engine, Communicator& ranks,
                                       std::span<const MediaItem> items,
                                       std::span<const RowBlock> destinations,
                                       const CallerStream& stream, const EncodeOptions& options) {
  return ranks::run_call(ranks, [&] {
    return ranks::CallToBlocks(engine, ranks, items, {destinations, stream}, options).run();
  });
}

}  // namespace fovea
