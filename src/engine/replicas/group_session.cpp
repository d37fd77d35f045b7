// Shares a batch among devices, for one caller.
#include "engine/replicas/group_session.h"

#include <algorithm>
#include <exception>
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

Assignment GroupSession::assign(std::span<const PreparedItem* const> items) const {
  std::vector<ItemSpec> specs;
  specs.reserve(items.size());
  for (const PreparedItem* item : items) specs.push_back(item->plan.spec);
  return assign_items(sessions_.front()->replica().model().graph_spec(), specs, sessions_.size());
}

void GroupSession::run(std::span<const PreparedItem* const> items, const EncodeOptions& how) {
  if (sessions_.size() == 1) {
    (void)sessions_.front()->run(items, how);
    return;
  }
  const Assignment assignment = assign(items);
  for_each_rank([&](std::size_t rank) {
    const std::span<const std::size_t> share = assignment.items(rank);
    if (!share.empty()) (void)sessions_[rank]->run(select(items, share), how);
  });
}

void GroupSession::attach(const CallerStream& stream) {
  for (const auto& session : sessions_) session->attach(stream);
}

void GroupSession::begin(std::span<const PreparedItem* const> items, const EncodeOptions& how,
                         std::span<const RowSink> out) {
  begin(items, assign(items), how, out);
}

void GroupSession::begin(std::span<const PreparedItem* const> items, const Assignment& assignment,
                         const EncodeOptions& how, std::span<const RowSink> out) {
  if (sessions_.size() == 1) {
    sessions_.front()->begin(items, how, out);
    return;
  }
  for_each_rank([&](std::size_t rank) {
    const std::span<const std::size_t> share = assignment.items(rank);
    if (!share.empty()) sessions_[rank]->begin(select(items, share), how, select(out, share));
  });
}

std::size_t GroupSession::sender_of(const RowCache::Claim& claim, const RowSink& sink) const {
  const std::string wanted = sink.is_on_gpu() ? cat("cuda:", sink.to->device) : "";
  for (std::size_t rank = 0; rank < sessions_.size(); ++rank) {
    Device& device = group_[rank].device();
    const bool is_near = claim.slot().device() == nullptr ? device.properties().name == wanted
                                                          : claim.slot().device() == &device;
    if (is_near) return rank;
  }
  return 0;
}

void GroupSession::begin_cached(std::vector<RowCache::Claim> found, const EncodeOptions& how,
                                std::span<const RowSink> out) {
  std::vector<std::vector<RowCache::Claim>> claims(sessions_.size());
  std::vector<std::vector<RowSink>> sinks(sessions_.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t rank = sender_of(found[i], out[i]);
    claims[rank].push_back(std::move(found[i]));
    sinks[rank].push_back(out[i]);
  }
  for (std::size_t rank = 0; rank < sessions_.size(); ++rank) {
    if (sinks[rank].empty()) continue;
    sessions_[rank]->begin_cached(std::move(claims[rank]), how, sinks[rank]);
  }
}

void GroupSession::finish() {
  for_each_rank([&](std::size_t rank) { sessions_[rank]->finish(); });
}

void GroupSession::abandon() noexcept {
  for (const auto& session : sessions_) session->abandon();
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
  for (std::size_t rank = 0; rank < failures.size(); ++rank) {
    if (!failures[rank]) continue;
    try {
      std::rethrow_exception(failures[rank]);
    } catch (const Error& error) {
      rethrow_of_replica(error, group_, rank);
    }
  }
}

}  // namespace fovea
