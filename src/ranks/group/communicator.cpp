// The functions that all communicators have in common.
#include "fovea/communicator.h"

#include <algorithm>

#include "core/boundary.h"
#include "core/check.h"
#include "fovea/text.h"
#include "ranks/transport/message.h"

namespace fovea {

namespace {

/// Whether a rank has failed, the first thing that agree() gathers.
struct RankStatus {
  std::int32_t code = -1;   // -1: it has not failed
  std::uint32_t bytes = 0;  // of the message
};

/// Memory for messages follows what the ranks say of their length, so it is bounded first.
/// @throws Error(kCorruptData) that names the rank, the same on all ranks.
void check_statuses(std::span<const RankStatus> statuses) {
  for (std::size_t rank = 0; rank < statuses.size(); ++rank) {
    FOVEA_CHECK(statuses[rank].bytes <= kMaxMessageBytes, kCorruptData, "rank ", rank,
                ": expected a message of at most ", kMaxMessageBytes, " bytes, got one of ",
                statuses[rank].bytes);
  }
}

/// The messages of all ranks have the length of the longest.
Error gather_message(Communicator& ranks, std::span<const RankStatus> statuses,
                     const std::optional<Error>& failure) {
  const std::size_t longest = std::ranges::max(statuses, {}, &RankStatus::bytes).bytes;
  std::string mine(failure ? failure->what() : "");
  mine.resize(longest);
  std::string all(longest * statuses.size(), '\0');
  ranks.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  const auto first = std::ranges::find_if(statuses, [](auto& one) { return one.code >= 0; });
  const auto rank = static_cast<std::size_t>(first - statuses.begin());
  return {ranks::error_code(first->code),
          cat("rank ", rank, ": ", printable(all.substr(rank * longest, first->bytes)))};
}

}  // namespace

void Communicator::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) try {
  FOVEA_CHECK(all.size() == mine.size() * static_cast<std::size_t>(size()), kInvalidArgument,
              "a gather of ", mine.size(), " bytes of ", size(), " ranks needs ",
              mine.size() * static_cast<std::size_t>(size()), " bytes for all, got ", all.size());
  const GatherPieces pieces{
      .fill =
          [&](std::size_t offset, std::span<std::byte> out) {
            std::ranges::copy(mine.subspan(offset, out.size()), out.begin());
          },
      .take =
          [&](int rank, std::size_t offset, std::span<const std::byte> bytes) {
            const std::size_t place = static_cast<std::size_t>(rank) * mine.size() + offset;
            std::ranges::copy(bytes, all.subspan(place).begin());
          }};
  all_gather_pieces(mine.size(), pieces);
} catch (...) {
  rethrow_as_error();
}

std::optional<Error> agree(Communicator& ranks, const std::optional<Error>& failure) try {
  RankStatus mine;
  if (failure) {
    mine.code = static_cast<std::int32_t>(failure->code());
    mine.bytes = static_cast<std::uint32_t>(std::string_view(failure->what()).size());
  }
  std::vector<RankStatus> statuses(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(statuses)));
  check_statuses(statuses);
  if (std::ranges::all_of(statuses, [](const RankStatus& one) { return one.code < 0; }))
    return std::nullopt;
  return gather_message(ranks, statuses, failure);
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
