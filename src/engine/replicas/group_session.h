#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/thread_pool.h"
#include "engine/replicas/load_balance.h"
#include "engine/replicas/replica_group.h"
#include "engine/replicas/replica_session.h"
#include "engine/replicas/shared_item.h"

namespace fovea {

/// What one caller has of its own on the replicas of a group. Every replica takes its share of a
/// batch by itself, on a thread of its own, and writes finished rows where the caller keeps them;
/// there is nothing to gather, to pad or to wait for but the end. With a group of one it runs on
/// the calling thread and starts no other. One thread at a time may use a session; those of several
/// threads run at the same time, and take turns on the devices.
class GroupSession {
 public:
  /// `group` must outlive the session.
  explicit GroupSession(ReplicaGroup& group);

  /// As ReplicaSession::attach, for every replica.
  void attach(std::span<const CallerStream> streams);
  /// Runs the tower on items spread over the replicas (assign_items); the rows of each are in its
  /// target after finish(), or stay on the devices. The next call may be a begin: its tower runs
  /// while these rows leave the devices (ReplicaSession::begin). Where items are packed by units,
  /// those that cost much are shared by all replicas (cut_items), but for those that a cache keeps
  /// on a device. Large units that are left when every replica has got equally many are computed by
  /// all replicas together, if nobody else wants one (ReplicaGroup::take_team), or by the first if
  /// they wait for each other in vain.
  /// @throws Error of the first replica, in their order, that failed; with several replicas its
  /// message names it. All replicas have ended by then, and are usable afterwards. Call abandon()
  /// then; targets are in part as they were.
  void begin(std::span<const TowerItem> items, const EncodeOptions& how);
  /// As above with the items spread as the caller says.
  void begin(std::span<const TowerItem> items, const Assignment& assignment,
             const EncodeOptions& how);
  /// As begin for rows that no tower has to compute. Those that the cache has on a device are sent
  /// by its replica, those that it has on the host by the replica on the GPU where they are wanted,
  /// if there is one, and those of the caller by the first.
  void move(std::vector<RowMove> moves);
  /// @throws as begin.
  void finish();
  /// Gives up what was begun: returns when nothing refers to its results any more.
  void abandon() noexcept;

 private:
  /// Calls work(rank) for every replica, on a thread each.
  void for_each_rank(const std::function<void(std::size_t)>& work);
  [[nodiscard]] std::size_t sender_of(const RowMove& move) const;
  /// Items and shares of items.
  [[nodiscard]] std::vector<TowerItem> share(std::span<const TowerItem> items);
  /// Takes those out of `items` that all replicas are to compute together.
  [[nodiscard]] std::vector<TowerItem> take_large(std::vector<TowerItem>& items) const;
  void begin_in_team(const TowerItem& item, const EncodeOptions& how, TeamTable& table);
  /// A place for the rows of an item of which several replicas have a share.
  SharedItem& share_rows(const TowerItem& item);

  ReplicaGroup& group_;
  std::deque<SharedItem> shared_;                          // of those that were begun
  std::vector<std::unique_ptr<ReplicaSession>> sessions_;  // of its replicas
  ThreadPool workers_;  // a thread per replica, the calling one included
};

}  // namespace fovea
