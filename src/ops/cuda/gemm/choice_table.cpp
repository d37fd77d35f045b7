// Choices by row count. Keys are ordered by GEMM first and row count last, so the row counts of one
// GEMM are neighbours.
#include "ops/cuda/gemm/choice_table.h"

#include <utility>

namespace fovea::cuda {

namespace {

/// Between two writes of the file: measuring one choice takes less time than a write may.
constexpr std::chrono::seconds kSaveInterval{2};
/// Answers that are remembered; a forward of one size has some ten.
constexpr std::size_t kMostTaken = 4096;

/// Whether two keys differ in their row count alone.
bool is_same_gemm(GemmKey a, const GemmKey& b) {
  a.rows = b.rows;
  return a == b;
}

}  // namespace

GemmChoiceTable::GemmChoiceTable(std::string path, std::string identity)
    : path_(std::move(path)),
      identity_(std::move(identity)),
      kept_(load_gemm_choices(path_, identity_)) {}

GemmChoiceTable::~GemmChoiceTable() {
  if (is_saved_) return;
  try {
    save_gemm_choices(path_, identity_, kept_);
  } catch (...) {
    return;  // what was measured will be measured again
  }
}

std::optional<GemmChoice> GemmChoiceTable::find(const GemmKey& key) const {
  const std::scoped_lock lock(mutex_);
  const auto found = kept_.find(key);
  if (found == kept_.end()) return std::nullopt;
  return found->second;
}

GemmChoice GemmChoiceTable::take(const GemmKey& key, const Asks& asks) {
  const std::scoped_lock lock(mutex_);
  if (const auto taken = taken_.find(key); taken != taken_.end()) return taken->second;
  const auto kept = kept_.find(key);
  const Entry* const entry =
      kept != kept_.end() && asks.fits(kept->second) ? &*kept : neighbour(key, asks);
  if (taken_.size() >= kMostTaken) taken_.clear();
  return taken_[key] = entry != nullptr ? entry->second : asks.guess();
}

const GemmChoiceTable::Entry* GemmChoiceTable::below(const GemmKey& key, const Asks& asks) const {
  for (auto entry = kept_.lower_bound(key); entry != kept_.begin();) {
    --entry;
    if (!is_same_gemm(entry->first, key)) break;
    if (entry->first.rows * kReach < key.rows && entry->first.rows < kManyRows) break;
    if (entry->second.is_measured && asks.fits(entry->second)) return &*entry;
  }
  return nullptr;
}

const GemmChoiceTable::Entry* GemmChoiceTable::above(const GemmKey& key, const Asks& asks) const {
  for (auto entry = kept_.upper_bound(key); entry != kept_.end(); ++entry) {
    if (!is_same_gemm(entry->first, key)) break;
    if (entry->first.rows > key.rows * kReach) break;
    if (entry->second.is_measured && asks.fits(entry->second)) return &*entry;
  }
  return nullptr;
}

const GemmChoiceTable::Entry* GemmChoiceTable::neighbour(const GemmKey& key,
                                                         const Asks& asks) const {
  const Entry* nearer = above(key, asks);
  const Entry* other = below(key, asks);
  if (nearer == nullptr || other == nullptr) return nearer != nullptr ? nearer : other;
  // Of ratios: rows / below < above / rows.
  if (key.rows * key.rows < nearer->first.rows * other->first.rows) std::swap(nearer, other);
  const std::optional<double> cost = asks.cost(nearer->second);
  const std::optional<double> other_cost = asks.cost(other->second);
  return cost && other_cost && *cost > kClearlyMore * *other_cost ? other : nearer;
}

void GemmChoiceTable::keep(const GemmKey& key, const GemmChoice& choice) {
  Choices known;
  {
    const std::scoped_lock lock(mutex_);
    kept_[key] = choice;
    taken_.clear();
    is_saved_ = false;
    const auto now = std::chrono::steady_clock::now();
    if (now - saved_at_ < kSaveInterval) return;
    known = kept_;
    is_saved_ = true;
    saved_at_ = now;
  }
  save_gemm_choices(path_, identity_, known);  // GEMMs of other threads do not wait
}

}  // namespace fovea::cuda
