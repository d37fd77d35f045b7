#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <unordered_set>
#include <utility>

namespace fovea {

/// Entries by their keys, each with a cost, in the order in which they were last used. What bounds
/// the sum of their costs lets the one go that was used longest ago, but none that is pinned. All
/// functions but the iteration take constant time. A function that throws has changed nothing.
/// Not thread-safe.
template <class Key, class Value>
class Lru {
 public:
  struct Entry {
    Key key;
    Value value;
    std::int64_t cost = 0;
    std::int64_t pins = 0;
  };

  explicit Lru(std::int64_t capacity) noexcept : capacity_(capacity) {}
  Lru(const Lru&) = delete;  // the index refers to the entries
  Lru& operator=(const Lru&) = delete;

  /// The entry of a key, which does not count as a use of it; null if there is none.
  [[nodiscard]] Entry* find(const Key& key) {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &**found;
  }
  [[nodiscard]] const Entry* find(const Key& key) const {
    return const_cast<Lru*>(this)->find(key);  // NOLINT: it changes nothing
  }
  /// As find(), and the entry is the one that was used last.
  Entry* use(const Key& key) { return change_pins(key, 0); }

  /// Enters a value, used last, in place of the one that its key has, whose pins it gets. The
  /// caller has made room: the costs may exceed the capacity otherwise.
  Entry& put(Key key, Value value, std::int64_t cost) {
    if (Entry* const entry = use(key)) {
      charge(cost - entry->cost, entry->pins > 0 ? cost - entry->cost : 0);
      entry->value = std::move(value);
      entry->cost = cost;
      return *entry;
    }
    unpinned_.push_back({std::move(key), std::move(value), cost});
    try {
      index_.insert(std::prev(unpinned_.end()));
    } catch (...) {
      unpinned_.pop_back();
      throw;
    }
    charge(cost, 0);
    return unpinned_.back();
  }
  /// Moves an entry that another container has here, with its cost and its pins; it was used last.
  void take(Lru& from, const Key& key) {
    const auto found = from.index_.find(key);
    const auto place = *found;
    index_.reserve(index_.size() + 1);  // what follows needs no memory
    index_.insert(from.index_.extract(found));
    std::list<Entry>& list = place->pins > 0 ? pinned_ : unpinned_;
    list.splice(list.end(), place->pins > 0 ? from.pinned_ : from.unpinned_, place);
    const std::int64_t pinned_cost = place->pins > 0 ? place->cost : 0;
    charge(place->cost, pinned_cost);
    from.charge(-place->cost, -pinned_cost);
  }
  /// Removes an entry, pinned or not. @return whether there was one.
  bool erase(const Key& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return false;
    const auto place = *found;
    index_.erase(found);
    charge(-place->cost, place->pins > 0 ? -place->cost : 0);
    (place->pins > 0 ? pinned_ : unpinned_).erase(place);
    return true;
  }
  void clear() noexcept {
    index_.clear();
    unpinned_.clear();
    pinned_.clear();
    cost_ = pinned_cost_ = 0;
  }

  /// Pins an entry, so many times more. @return the entry; null if there is none.
  Entry* pin(const Key& key, std::int64_t times = 1) { return change_pins(key, times); }
  /// Takes one pin back. An entry without pins was used last. @return as pin.
  Entry* unpin(const Key& key) { return change_pins(key, -1); }

  /// Lets entries go, from the one that was used longest ago, until a further cost fits in; none if
  /// that would not do. @param leave is called with every entry before it goes.
  /// @return whether there is room. @throws what `leave` throws, before that entry goes.
  template <class Leave>
  bool make_room(std::int64_t cost, Leave&& leave) {
    if (cost > freeable()) return false;
    while (cost > free()) {
      leave(unpinned_.front());
      erase(unpinned_.front().key);
    }
    return true;
  }

  [[nodiscard]] std::int64_t capacity() const noexcept { return capacity_; }
  /// The cost of all entries.
  [[nodiscard]] std::int64_t cost() const noexcept { return cost_; }
  /// The capacity that no entry takes.
  [[nodiscard]] std::int64_t free() const noexcept { return capacity_ - cost_; }
  /// The capacity that no pinned entry takes.
  [[nodiscard]] std::int64_t freeable() const noexcept { return capacity_ - pinned_cost_; }
  [[nodiscard]] std::size_t size() const noexcept { return index_.size(); }

  /// The entries that may go, from the one that was used longest ago, and the others.
  [[nodiscard]] const std::list<Entry>& unpinned() const noexcept { return unpinned_; }
  [[nodiscard]] const std::list<Entry>& pinned() const noexcept { return pinned_; }

 private:
  using Place = typename std::list<Entry>::iterator;
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const Key& key) const { return std::hash<Key>()(key); }
    std::size_t operator()(Place place) const { return (*this)(place->key); }
  };
  struct SameKey {
    using is_transparent = void;
    bool operator()(Place a, Place b) const { return a->key == b->key; }
    bool operator()(const Key& key, Place place) const { return key == place->key; }
    bool operator()(Place place, const Key& key) const { return key == place->key; }
  };

  Entry* change_pins(const Key& key, std::int64_t change) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    const auto place = *found;
    std::list<Entry>& from = place->pins > 0 ? pinned_ : unpinned_;
    place->pins += change;
    std::list<Entry>& to = place->pins > 0 ? pinned_ : unpinned_;
    to.splice(to.end(), from, place);
    if (&from != &to) charge(0, &to == &pinned_ ? place->cost : -place->cost);
    return &*place;
  }
  void charge(std::int64_t cost, std::int64_t pinned_cost) noexcept {
    cost_ += cost;
    pinned_cost_ += pinned_cost;
  }

  std::int64_t capacity_;
  std::int64_t cost_ = 0;
  std::int64_t pinned_cost_ = 0;
  std::list<Entry> unpinned_;  // used longest ago first
  std::list<Entry> pinned_;
  std::unordered_set<Place, Hash, SameKey> index_;
};

}  // namespace fovea
