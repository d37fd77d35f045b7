#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/boundary.h"
#include "engine/row_gather.h"
#include "fovea/communicator.h"
#include "fovea/embedding.h"
#include "fovea/engine.h"
#include "fovea/media.h"
#include "fovea/planned_item.h"
#include "fovea/row_block.h"
#include "ranks/byte_sequence.h"

namespace fovea::ranks {

/// A failure that all ranks know of, and throw. The group goes on.
struct SharedFailure {
  Error error;
};

/// A call on one rank: what encode_on_ranks does wherever rows go. The steps throw SharedFailure,
/// ThrownByCaller, and what ends the group.
class RankCall {
 public:
  using Encode =
      std::function<std::vector<Embedding>(ItemView share, const EncodeOptions& options)>;

  /// All arguments must outlive this object.
  RankCall(Engine& engine, Communicator& ranks, std::span<const MediaItem> items,
           const EncodeOptions& options) noexcept
      : engine_(engine), ranks_(ranks), items_(items), options_(options) {}

  /// Does work that may fail on one rank, and returns when all have done it.
  void on_all_ranks(const std::function<void()>& work);
  /// From now on a failure of this rank's device ends the group: others may wait on their GPUs for
  /// what this one cannot send any more.
  void end_with_device() noexcept { ends_with_device_ = true; }

  /// Finds out who encodes what. Part of work on all ranks, as is what follows.
  /// @param to destinations of the items; none: rows go to results.
  void assign(std::span<const RowBlock> to);
  /// The items with their plans, in the order of the call; after assign().
  [[nodiscard]] std::span<const PlannedItem> planned() const noexcept { return planned_; }
  /// Items and shares of items, in the order of the items and of their units.
  [[nodiscard]] std::span<const ItemPiece> pieces() const noexcept { return shares_.pieces; }
  /// Indices of the pieces of a rank in the order in which it encodes them.
  [[nodiscard]] std::span<const std::size_t> pieces_of(std::size_t rank) const {
    return shares_.assignment.items(rank);
  }
  /// Requires, in exchange(), that all ranks have said the same here.
  void expect_same(std::string_view text);
  /// Calls `encode` with this rank's share, unless it is empty, and options that also end it when
  /// another rank has failed.
  void encode_share(const Encode& encode);

  /// Gathers the descriptions of all shares on all ranks.
  void exchange();
  /// The results of all ranks, in the order of the pieces: this rank's as they were encoded, those
  /// of others without data. Once, after exchange(), as part of work on all ranks.
  [[nodiscard]] std::vector<Embedding> results();
  /// The results of the items: of one that is shared what is known of its first units, rows and
  /// times of all of them, or why the first that failed did.
  /// @param parts results(), whose data was taken.
  [[nodiscard]] std::vector<Embedding> join(std::span<const Embedding> parts) const;
  /// Rows of the share with the most bytes; after exchange().
  [[nodiscard]] std::size_t longest_share_bytes() const;

  [[nodiscard]] std::size_t rank() const { return static_cast<std::size_t>(ranks_.rank()); }
  [[nodiscard]] std::size_t num_ranks() const { return static_cast<std::size_t>(ranks_.size()); }

 private:
  /// The sizes of a share, which its rank sends to the others.
  struct ShareSizes {
    std::uint64_t call = 0;  ///< hash of what the call was made with
    std::uint64_t description_bytes = 0;
    std::uint64_t row_bytes = 0;
  };

  Engine& engine_;
  Communicator& ranks_;
  std::span<const MediaItem> items_;
  const EncodeOptions& options_;
  bool ends_with_device_ = false;
  std::vector<PlannedItem> planned_;  // refer to items_
  RowGather::Shares shares_;
  std::vector<Embedding> share_;         // of this rank, in the order of its assignment
  std::vector<std::byte> descriptions_;  // of this share; after exchange() of all, equally long
  ShareSizes mine_;
  std::vector<ShareSizes> sizes_;  // of all shares
};

/// Runs a call. A failure that not all ranks know of ends the group, because others wait for this
/// rank; what a function of the caller has thrown, whatever it is, is none.
/// @throws Error, and what functions of the caller throw.
template <class Run>
std::vector<Embedding> run_call(Communicator& ranks, const Run& run) {
  try {
    return run();
  } catch (const SharedFailure& failure) {
    throw Error(failure.error);
  } catch (const ThrownByCaller& thrown) {
    std::rethrow_exception(thrown.exception);
  } catch (...) {
    try {
      rethrow_as_error();
    } catch (const Error& error) {
      ranks.abort(error);  // throws what ended the group, if something has
      throw;
    }
  }
}

/// Gathers bytes of all ranks in host memory, where each has a sequence of its own length.
/// @param longest bytes of the longest; the same on all ranks.
/// @param rows of each rank: those of this one are there, the others are written.
/// @throws as Communicator::all_gather_pieces.
void gather_rows(Communicator& ranks, std::size_t longest, std::span<const ByteSequence> rows);

}  // namespace fovea::ranks
