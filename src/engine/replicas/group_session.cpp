// Shares a batch among devices, for one caller.
#include "engine/replicas/group_session.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/check.h"

namespace fovea {

namespace {

/// The elements of `all` at `indices`.
template <class T>
std::vector<T> select(std::span<T const> all, std::span<const std::size_t> indices) {
  std::vector<T> selected;
  selected.reserve(indices.size());
  for (const std::size_t index : indices) selected.push_back(all[index]);
  return selected;
}

}  // namespace

GroupSession::GroupSession(ReplicaGroup& group)
    : group_(group), workers_(static_cast<int>(group.size())) {
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    sessions_.push_back(std::make_unique<ReplicaSession>(group[rank]));
  }
}

void GroupSession::attach(std::span<const CallerStream> streams) {
  for (const auto& session : sessions_) session->attach(streams);
}

void GroupSession::begin(std::span<const TowerItem> items, const EncodeOptions& how) {
  if (sessions_.size() == 1) {
    sessions_.front()->begin(items, how);
    return;
  }
  std::vector<TowerItem> shares = share(items);
  const ReplicaGroup::TeamLoan team = group_.take_team();
  std::vector<TowerItem> large;
  if (team.get() != nullptr) large = take_large(shares);
  std::vector<ItemSpec> specs;
  specs.reserve(shares.size());
  for (const TowerItem& item : shares) specs.push_back(item.spec());
  begin(shares, assign_items(group_[0].model().graph_spec(), specs, sessions_.size()), how);
  for (const TowerItem& item : large) begin_in_team(item, how, *team.get());
  for (SharedItem& item : shared_) item.end_store();
}

std::vector<TowerItem> GroupSession::take_large(std::vector<TowerItem>& items) const {
  const auto stays = [&](const TowerItem& item) {
    const bool on_one = item.keep != nullptr && !item.keep->stores_on_host();
    return on_one || item.share.units.count > 0 || !group_.suits_team(item.spec());
  };
  const auto large = std::stable_partition(items.begin(), items.end(), stays);
  const auto left = (items.end() - large) % std::ssize(sessions_);
  std::stable_sort(large, items.end(), [](const TowerItem& a, const TowerItem& b) {
    return a.spec().input_rows < b.spec().input_rows;
  });
  std::vector<TowerItem> taken(items.end() - left, items.end());
  items.resize(items.size() - taken.size());
  return taken;
}

void GroupSession::begin_in_team(const TowerItem& item, const EncodeOptions& how,
                                 TeamTable& table) {
  SharedItem* const rows = item.target.result == nullptr ? nullptr : &share_rows(item);
  const auto part_of = [&](const TeamPart& part) {
    const ItemShare share{.units = {0, 1}, .counts = part.rank == 0, .part = part};
    return rows == nullptr ? TowerItem{.prepared = item.prepared, .share = share}
                           : rows->add(*item.prepared, share);
  };
  std::vector<TowerItem> parts;
  parts.reserve(sessions_.size());
  for (int rank = 0; rank < table.size(); ++rank) parts.push_back(part_of({rank, table.size()}));
  std::atomic<int> begun = 0;
  table.open();
  try {
    for_each_rank([&](std::size_t rank) {
      try {
        sessions_[rank]->begin({&parts[rank], 1}, how, &table);
        ++begun;
      } catch (...) {
        table.leave();
        throw;
      }
    });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable || begun > 0) throw;
    // All waited in vain and none has failed: one came late. It will not be late for itself.
    if (rows != nullptr) rows->forget_shares();
    TowerItem whole = part_of({});
    whole.share = {};  // an item like any other; its rows go where those of the parts would
    sessions_.front()->begin({&whole, 1}, how);
  }
}

SharedItem& GroupSession::share_rows(const TowerItem& item) {
  const Device& device = group_[0].device();
  const std::int64_t width = group_[0].model().graph_spec().out_width;
  if (item.keep != nullptr) {
    item.keep->begin_store(group_[0].device(), item.spec().out_rows, width,
                           device.properties().activation_dtype);
  }
  return shared_.emplace_back(item, width);
}

std::vector<TowerItem> GroupSession::share(std::span<const TowerItem> items) {
  const GraphSpec& model = group_[0].model().graph_spec();
  const bool are_shared = group_[0].graphs().packing() == PackingPolicy::kUnits;
  std::vector<ItemSpec> specs;
  for (const TowerItem& item : items) {
    specs.push_back(item.spec());
    const bool on_one = item.keep != nullptr && !item.keep->stores_on_host();
    if (on_one) specs.back().units = {};  // one unit, to stay whole
  }
  std::vector<TowerItem> all;
  for (const ItemPiece& piece : cut_items(model, specs, are_shared ? sessions_.size() : 1)) {
    const TowerItem& item = items[piece.item];
    ItemShare share = piece.share;
    if (share.units.count == 0) {
      all.push_back(item);
      continue;
    }
    const bool stays = item.target.result == nullptr;
    if (share.units.first == 0 && !stays) share_rows(item);
    share.units.first += item.share.units.first;
    share.counts &= item.share.counts;
    all.push_back(stays ? TowerItem{.prepared = item.prepared, .share = share}
                        : shared_.back().add(*item.prepared, share));
  }
  return all;
}

void GroupSession::begin(std::span<const TowerItem> items, const Assignment& assignment,
                         const EncodeOptions& how) {
  if (sessions_.size() == 1) {
    sessions_.front()->begin(items, how);
    return;
  }
  for_each_rank([&](std::size_t rank) {
    const std::span<const std::size_t> share = assignment.items(rank);
    if (!share.empty()) sessions_[rank]->begin(select(items, share), how);
  });
}

std::size_t GroupSession::sender_of(const RowMove& move) const {
  if (!move.claim) return 0;
  const Device* const owner = move.claim->slot().device();
  const std::string wanted = move.target.is_on_gpu() ? cat("cuda:", move.target.block->device) : "";
  for (std::size_t rank = 0; rank < sessions_.size(); ++rank) {
    const Device& device = group_[rank].device();
    if (owner == nullptr ? device.properties().name == wanted : owner == &device) return rank;
  }
  return 0;
}

void GroupSession::move(std::vector<RowMove> moves) {
  std::vector<std::vector<RowMove>> shares(sessions_.size());
  for (RowMove& move : moves) shares[sender_of(move)].push_back(std::move(move));
  for (std::size_t rank = 0; rank < sessions_.size(); ++rank) {
    if (!shares[rank].empty()) sessions_[rank]->move(std::move(shares[rank]));
  }
}

void GroupSession::finish() {
  for_each_rank([&](std::size_t rank) { sessions_[rank]->finish(); });
  for (SharedItem& item : shared_) item.finish();
  shared_.clear();
}

void GroupSession::abandon() noexcept {
  for (const auto& session : sessions_) session->abandon();
  shared_.clear();
}

void GroupSession::for_each_rank(const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> failures(sessions_.size());
  workers_.parallel_for(std::ssize(sessions_), [&](std::int64_t task, int) {
    const auto rank = static_cast<std::size_t>(task);
    try {
      work(rank);
    } catch (...) {  // the others go on: none waits for this one
      failures[rank] = std::current_exception();
    }
  });
  std::optional<Error> of_others;  // of a team, of which another one could not go on
  for (std::size_t rank = 0; rank < failures.size(); ++rank) {
    if (!failures[rank]) continue;
    try {
      std::rethrow_exception(failures[rank]);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable) rethrow_of_replica(error, group_, rank);
      if (!of_others) of_others = error;
    }
  }
  if (of_others) throw Error(*of_others);
}

}  // namespace fovea
