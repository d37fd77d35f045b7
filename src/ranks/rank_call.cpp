// What the ranks of a call agree on.
#include "ranks/rank_call.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "core/boundary.h"
#include "core/check.h"
#include "core/fnv1a.h"
#include "ranks/description.h"

namespace fovea::ranks {

namespace {

/// Everything about a call that must be the same on all ranks, as text.
std::string describe_call(const ModelReport& model, std::span<const MediaItem> items,
                          const EncodeOptions& options, const RowGather::Shares& shares) {
  std::string text = cat(model.architecture, ' ', model.width, ' ', model.parameters, ' ',
                         static_cast<int>(options.dtype), static_cast<int>(options.on_error));
  for (const MediaItem& item : items) {
    text += cat('\n', item.name, ' ', static_cast<int>(item.modality), ' ', item.source.index(),
                ' ', item.num_bytes(), ' ', item.paths().size(), ' ', item.num_frames());
  }
  for (const auto& [item, share] : shares.pieces) {
    text += cat(' ', item, ' ', share.units.first, ' ', share.units.count);
  }
  for (const std::size_t piece : shares.assignment.order) text += cat(' ', piece);
  for (const std::int64_t load : shares.assignment.loads) text += cat(' ', load);
  return text;
}

}  // namespace

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
    // Others have failed before, and report why.
    const bool only_raised = error.code() == ErrorCode::kCancelled &&
                             ranks_.raised().stop_requested() &&
                             !options_.bounds.stop.stop_requested();
    if (!only_raised) failure = error;
  } catch (...) {
    callers = std::current_exception();
    failure.emplace(ErrorCode::kCancelled, "a function of the caller has thrown an exception");
  }
  if (failure && failure->code() == ErrorCode::kDevice && ends_with_device_) ranks_.abort(*failure);
  if (failure) ranks_.raise();
  const std::optional<Error> first = agree(ranks_, failure);
  if (callers) throw ThrownByCaller{callers};
  if (first) throw SharedFailure{*first};
}

void RankCall::assign(std::span<const RowBlock> to) {
  FOVEA_CHECK(options_.copies.empty(), kInvalidArgument,
              "copies of rows are for calls of one rank");
  planned_ = RowGather::plan(engine_, items_, options_.bounds);
  shares_ = RowGather::share(engine_, planned_, to, num_ranks());
  expect_same(describe_call(engine_.report(), items_, options_, shares_));
}

void RankCall::expect_same(std::string_view text) {
  mine_.call = fnv1a(cat(mine_.call, ' ', text));
}

void RankCall::encode_share(const Encode& encode) {
  std::vector<ItemPiece> share;
  for (const std::size_t piece : pieces_of(rank())) share.push_back(shares_.pieces[piece]);
  if (!share.empty()) {
    std::stop_source stop;
    const auto request_stop = [&stop] { stop.request_stop(); };
    const std::stop_callback if_others_fail(ranks_.raised(), request_stop);
    const std::stop_callback if_caller_stops(options_.bounds.stop, request_stop);
    EncodeOptions options = options_;
    options.bounds.stop = stop.get_token();
    share_ = encode({planned_, share}, options);
  }
  for (const Embedding& item : share_) {
    append_description(item, descriptions_);
    mine_.row_bytes += row_bytes(item);
  }
  mine_.description_bytes = descriptions_.size();
}

void RankCall::exchange() {
  sizes_.resize(num_ranks());
  ranks_.all_gather(std::as_bytes(std::span(&mine_, 1)), std::as_writable_bytes(std::span(sizes_)));
  for (std::size_t other = 1; other < sizes_.size(); ++other) {  // the same on all ranks
    if (sizes_[other].call == sizes_.front().call) continue;
    throw SharedFailure{Error(ErrorCode::kInvalidArgument,
                              cat("rank ", other, " was called with other items or options than ",
                                  "rank 0, or has another model"))};
  }
  const std::size_t longest =
      std::ranges::max(sizes_, {}, &ShareSizes::description_bytes).description_bytes;
  descriptions_.resize(longest);
  std::vector<std::byte> all(longest * sizes_.size());
  ranks_.all_gather(descriptions_, all);
  descriptions_ = std::move(all);
}

std::vector<Embedding> RankCall::results() {
  const std::size_t longest = descriptions_.size() / sizes_.size();
  std::vector<Embedding> results(shares_.pieces.size());
  for (std::size_t other = 0; other < sizes_.size(); ++other) {
    auto described = std::span<const std::byte>(descriptions_).subspan(other * longest, longest);
    std::size_t place = 0;
    std::size_t bytes = 0;
    for (const std::size_t piece : pieces_of(other)) {
      results[piece] = other == rank() ? std::move(share_[place++])
                                       : read_description(described, sizes_[other].row_bytes);
      results[piece].name = items_[shares_.pieces[piece].item].name;
      bytes += row_bytes(results[piece]);
    }
    FOVEA_CHECK(bytes == sizes_[other].row_bytes, kCorruptData, "rank ", other, " describes ",
                bytes, " bytes of rows and has ", sizes_[other].row_bytes);
  }
  return results;
}

std::vector<Embedding> RankCall::join(std::span<const Embedding> parts) const {
  std::vector<Embedding> results(items_.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [item, share] = shares_.pieces[i];
    Embedding& result = results[item];
    const bool is_first = share.units.first == 0;
    if (!is_first && result.error) continue;
    if (is_first || parts[i].error) {
      result = parts[i];
    } else {
      FOVEA_CHECK(parts[i].width == result.width && parts[i].dtype == result.dtype, kCorruptData,
                  result.name, ": its shares have rows of different kinds");
      result.rows += parts[i].rows;
      result.times += parts[i].times;
    }
  }
  return results;
}

std::size_t RankCall::longest_share_bytes() const {
  return std::ranges::max(sizes_, {}, &ShareSizes::row_bytes).row_bytes;
}

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
