#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"

namespace fovea {

/// Which units of some items hold the same bytes on the same grid, so that the tower needs to see
/// only the first of them: a frame that did not change, a page that comes again. Bytes are
/// compared, not only digests of them. Not thread-safe.
class UnitReuse {
 public:
  /// A unit of one of the items.
  struct Unit {
    std::size_t item = 0;
    PathId path = 0;
    std::int64_t index = 0;  ///< on the path

    friend auto operator<=>(const Unit&, const Unit&) noexcept = default;
  };
  /// A unit whose rows are those of an earlier one.
  struct Copy {
    Unit of;  ///< is no copy itself
    Unit to;
  };

  /// Compares all units of these items with each other. Reads 256 bytes of each, and all bytes of
  /// those that agree there. Allocates only what earlier calls have not. @param items, shares must
  /// stay while this object is asked about them; no shares: all items are whole.
  void find(std::span<const PreparedItem* const> items, std::span<const ItemShare> shares,
            std::size_t num_paths);
  /// Forgets all items: nothing is a copy.
  void clear() noexcept;

  [[nodiscard]] std::int64_t num_copies() const noexcept { return std::ssize(copies_); }
  /// The share of the item as it is packed: without the units that are copies.
  [[nodiscard]] ItemSpec spec(std::size_t item) const;
  /// Number of copies among the units of an item.
  [[nodiscard]] std::int64_t num_copies(std::size_t item) const;
  /// Appends units of an item that run, as parts of consecutive ones.
  /// @param first, count of those units of the share that are no copies.
  void append_parts(std::size_t item, PathId path, std::int64_t first, std::int64_t count,
                    std::vector<ItemPart>& parts) const;
  /// The copies of a unit, ascending.
  [[nodiscard]] std::span<const Copy> copies_of(const Unit& unit) const;

 private:
  struct Digest {
    std::size_t value = 0;
    Unit unit;

    friend auto operator<=>(const Digest&, const Digest&) noexcept = default;
  };
  [[nodiscard]] ItemPart part(const Unit& unit) const noexcept;
  [[nodiscard]] ItemShare share_of(std::size_t item) const noexcept {
    return shares_.empty() ? ItemShare{} : shares_[item];
  }
  [[nodiscard]] bool are_equal(const Unit& a, const Unit& b) const;
  /// Adds the copies among units whose samples agree.
  void compare(std::span<Digest> alike);
  /// The same by a digest of all bytes, for units that do not equal the first of their sample.
  void compare_digests(std::span<Digest> alike);
  [[nodiscard]] bool is_copy(const Unit& unit) const;
  [[nodiscard]] std::span<const Unit> copies_in(std::size_t item) const;

  std::span<const PreparedItem* const> items_;
  std::span<const ItemShare> shares_;
  std::vector<Digest> digests_;
  std::vector<Copy> copies_;  // by what they are copies of
  std::vector<Unit> copied_;  // the copies themselves, ascending
};

}  // namespace fovea
