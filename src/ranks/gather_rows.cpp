#include "ranks/gather_rows.h"

namespace fovea::ranks {

void gather_rows(Communicator& ranks, std::size_t longest, std::span<const ByteSequence> rows) {
  const auto mine = static_cast<std::size_t>(ranks.rank());
  const GatherPieces pieces{
      .fill = [&](std::size_t offset, std::span<std::byte> out) { rows[mine].read(offset, out); },
      .take =
          [&](int from, std::size_t offset, std::span<const std::byte> bytes) {
            if (from == ranks.rank()) return;  // they are in their place
            rows[static_cast<std::size_t>(from)].write(offset, bytes);
          }};
  ranks.all_gather_pieces(longest, pieces);
}

}  // namespace fovea::ranks
