// One call of all ranks: who encodes what, and everybody's rows on every rank.
#include "fovea/encode_on_ranks.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <utility>

#include "core/boundary.h"
#include "core/check.h"
#include "core/fnv1a.h"
#include "engine/replicas/load_balance.h"
#include "ranks/byte_sequence.h"
#include "ranks/description.h"

namespace fovea {

namespace {

/// What a rank tells the others about its share.
struct ShareSizes {
  std::uint64_t call = 0;  ///< hash of what the call was made with
  std::uint64_t description_bytes = 0;
  std::uint64_t row_bytes = 0;
};

/// A failure that all ranks know of, and throw.
struct SharedFailure {
  Error error;
};

Assignment assign(const Engine& engine, std::size_t num_ranks, std::span<const MediaItem> items,
                  const CallBounds& bounds) {
  const std::vector<std::optional<std::int64_t>> patches = engine.patches_ahead(items, bounds);
  std::int64_t largest = 1;
  for (const auto& known : patches) largest = std::max(largest, known.value_or(0));
  std::vector<std::int64_t> sizes;
  sizes.reserve(patches.size());
  for (const auto& known : patches) sizes.push_back(known.value_or(largest));
  return balance_load(sizes, num_ranks);
}

/// Hash of everything that must be the same on all ranks.
std::uint64_t hash_call(const ModelReport& model, std::span<const MediaItem> items,
                        const EncodeOptions& options, const Assignment& assignment) {
  std::string text = cat(model.architecture, ' ', model.width, ' ', model.parameters, ' ',
                         static_cast<int>(options.dtype), static_cast<int>(options.on_error));
  for (const MediaItem& item : items) {
    text += cat('\n', item.name, ' ', static_cast<int>(item.modality),
                static_cast<int>(item.source), ' ', item.content().size(), ' ', item.paths.size());
  }
  for (const std::size_t item : assignment.order) text += cat(' ', item);
  for (const std::int64_t load : assignment.loads) text += cat(' ', load);
  return fnv1a(text);
}

/// A call on one rank.
class RankCall {
 public:
  RankCall(Engine& engine, Communicator& ranks, std::span<const MediaItem> items,
           const EncodeOptions& options)
      : engine_(engine), ranks_(ranks), items_(items), options_(options) {}

  /// @throws SharedFailure, what the caller's own functions throw, and what ends the group.
  std::vector<Embedding> run() {
    on_all_ranks([&] { encode_share(); });
    const std::vector<ShareSizes> sizes = gather_sizes();
    const std::vector<std::byte> descriptions = gather_descriptions(sizes);
    std::vector<ranks::ByteSequence> rows(sizes.size());
    on_all_ranks([&] { place_shares(sizes, descriptions, rows); });
    gather_rows(sizes, rows);
    return std::move(results_);
  }

 private:
  /// Does work that may fail on one rank, and returns when all have done it.
  void on_all_ranks(const std::function<void()>& work);
  void encode_share();
  /// encode() of this rank's share, which also ends when another rank has failed.
  [[nodiscard]] std::vector<Embedding> encode(std::span<const MediaItem> share);
  [[nodiscard]] std::vector<ShareSizes> gather_sizes();
  /// The descriptions of all ranks, each padded to the longest.
  [[nodiscard]] std::vector<std::byte> gather_descriptions(std::span<const ShareSizes> sizes);
  /// Makes the results of all ranks. @param rows receives where the rows of each rank go.
  void place_shares(std::span<const ShareSizes> sizes, std::span<const std::byte> descriptions,
                    std::span<ranks::ByteSequence> rows);
  void gather_rows(std::span<const ShareSizes> sizes, std::span<const ranks::ByteSequence> rows);
  [[nodiscard]] std::size_t rank() const { return static_cast<std::size_t>(ranks_.rank()); }

  Engine& engine_;
  Communicator& ranks_;
  std::span<const MediaItem> items_;
  const EncodeOptions& options_;
  Assignment assignment_;
  std::vector<Embedding> share_;         // of this rank, in the order of its assignment
  std::vector<std::byte> descriptions_;  // of the share
  ShareSizes sizes_;
  std::vector<Embedding> results_;
};

void RankCall::on_all_ranks(const std::function<void()>& work) {
  std::optional<Error> failure;
  std::exception_ptr callers;  // thrown by a function of the caller
  try {
    try {
      work();
    } catch (...) {
      rethrow_as_error();
    }
  } catch (const Error& error) {
    // Others have failed before, and tell why.
    const bool only_raised = error.code() == ErrorCode::kCancelled &&
                             ranks_.raised().stop_requested() &&
                             !options_.bounds.stop.stop_requested();
    if (!only_raised) failure = error;
  } catch (...) {
    callers = std::current_exception();
    failure.emplace(ErrorCode::kCancelled, "a function of the caller has thrown an exception");
  }
  if (failure) ranks_.raise();
  const std::optional<Error> first = agree(ranks_, failure);
  if (callers) std::rethrow_exception(callers);
  if (first) throw SharedFailure{*first};
}

void RankCall::encode_share() {
  assignment_ = assign(engine_, static_cast<std::size_t>(ranks_.size()), items_, options_.bounds);
  sizes_.call = hash_call(engine_.report(), items_, options_, assignment_);
  std::vector<MediaItem> share;
  for (const std::size_t item : assignment_.items(rank())) share.push_back(items_[item]);
  if (!share.empty()) share_ = encode(share);
  for (const Embedding& item : share_) {
    ranks::append_description(item, descriptions_);
    sizes_.row_bytes += item.data.size();
  }
  sizes_.description_bytes = descriptions_.size();
}

std::vector<Embedding> RankCall::encode(std::span<const MediaItem> share) {
  std::stop_source stop;
  const auto request_stop = [&stop] { stop.request_stop(); };
  const std::stop_callback if_others_fail(ranks_.raised(), request_stop);
  const std::stop_callback if_caller_stops(options_.bounds.stop, request_stop);
  EncodeOptions options = options_;
  options.bounds.stop = stop.get_token();
  return engine_.encode(share, options);
}

std::vector<ShareSizes> RankCall::gather_sizes() {
  std::vector<ShareSizes> sizes(static_cast<std::size_t>(ranks_.size()));
  ranks_.all_gather(std::as_bytes(std::span(&sizes_, 1)), std::as_writable_bytes(std::span(sizes)));
  for (std::size_t rank = 1; rank < sizes.size(); ++rank) {  // the same on all ranks
    if (sizes[rank].call == sizes.front().call) continue;
    throw SharedFailure{Error(ErrorCode::kInvalidArgument,
                              cat("rank ", rank, " was called with other items or options than ",
                                  "rank 0, or has another model"))};
  }
  return sizes;
}

std::vector<std::byte> RankCall::gather_descriptions(std::span<const ShareSizes> sizes) {
  const std::size_t longest =
      std::ranges::max(sizes, {}, &ShareSizes::description_bytes).description_bytes;
  descriptions_.resize(longest);
  std::vector<std::byte> all(longest * sizes.size());
  ranks_.all_gather(descriptions_, all);
  return all;
}

void RankCall::place_shares(std::span<const ShareSizes> sizes,
                            std::span<const std::byte> descriptions,
                            std::span<ranks::ByteSequence> rows) {
  const std::size_t longest = descriptions.size() / sizes.size();
  results_.resize(items_.size());
  for (std::size_t other = 0; other < sizes.size(); ++other) {
    std::span<const std::byte> described = descriptions.subspan(other * longest, longest);
    std::size_t place = 0;
    for (const std::size_t item : assignment_.items(other)) {
      results_[item] = other == rank() ? std::move(share_[place++])
                                       : ranks::read_description(described, sizes[other].row_bytes);
      results_[item].name = items_[item].name;
      rows[other].append(results_[item].data);
    }
    FOVEA_CHECK(rows[other].size() == sizes[other].row_bytes, kCorruptData, "rank ", other,
                " describes ", rows[other].size(), " bytes of rows and has ",
                sizes[other].row_bytes);
  }
}

void RankCall::gather_rows(std::span<const ShareSizes> sizes,
                           std::span<const ranks::ByteSequence> rows) {
  const std::size_t longest = std::ranges::max(sizes, {}, &ShareSizes::row_bytes).row_bytes;
  const GatherPieces pieces{
      .fill = [&](std::size_t offset, std::span<std::byte> out) { rows[rank()].read(offset, out); },
      .take =
          [&](int from, std::size_t offset, std::span<const std::byte> bytes) {
            if (from == ranks_.rank()) return;  // they are in their place
            rows[static_cast<std::size_t>(from)].write(offset, bytes);
          }};
  ranks_.all_gather_pieces(longest, pieces);
}

}  // namespace

std::vector<Embedding> encode_on_ranks(Engine& engine, Communicator& ranks,
                                       std::span<const MediaItem> items,
                                       const EncodeOptions& options) try {
  return RankCall(engine, ranks, items, options).run();
} catch (const SharedFailure& failure) {
  throw Error(failure.error);
} catch (const Error& error) {
  ranks.abort(error);  // unless the group has ended: others wait for this rank
  throw;
} catch (const std::bad_alloc&) {
  ranks.abort(Error(ErrorCode::kOutOfMemory, "out of memory"));
  throw;
}

}  // namespace fovea
