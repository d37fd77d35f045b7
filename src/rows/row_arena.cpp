// Memory for rows, and who may still use it.
#include "rows/row_arena.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fovea {

namespace {

/// Leaves one of each mark that has not passed.
void tidy(std::vector<RowMark>& marks) {
  std::erase_if(marks, [](const RowMark& mark) { return mark->is_idle(); });
  std::ranges::sort(marks);
  marks.erase(std::unique(marks.begin(), marks.end()), marks.end());
}

}  // namespace

RowMark RowMarks::after(Stream& queue) {
  const std::lock_guard lock(mutex_);
  auto mark = std::ranges::find_if(
      all_, [](const RowMark& known) { return known.use_count() == 1 && known->is_idle(); });
  if (mark == all_.end()) mark = all_.insert(all_.end(), device_.create_copy_stream());
  (*mark)->wait_for(queue);
  return *mark;
}

RowSlot::~RowSlot() {
  if (data_ == nullptr) return;
  std::vector<RowMark> marks = std::move(written_.empty() ? earlier_ : readers_);
  try {
    marks.insert(marks.end(), written_.begin(), written_.end());
    arena_.release(static_cast<std::size_t>(data_ - arena_.memory_.data()),
                   {RowArena::rounded(bytes_), std::move(marks)});
  } catch (...) {  // NOLINT: without memory to note it in, the hole is lost
  }
}

Device* RowSlot::device() const noexcept { return arena_.device(); }

void RowSlot::begin_write(Stream& queue) {
  for (const RowMark& mark : earlier_) queue.wait_for(*mark);
}

void RowSlot::end_write(RowMark mark) {
  const std::lock_guard lock(mutex_);
  written_.push_back(std::move(mark));
  has_rows_ = false;
}

void RowSlot::begin_read(Stream& queue) const {
  for (const RowMark& mark : written_) queue.wait_for(*mark);
}

bool RowSlot::has_rows() const {
  const auto has_passed = [](const RowMark& mark) { return mark->is_idle(); };
  if (!has_rows_) has_rows_ = std::ranges::all_of(written_, has_passed);
  return has_rows_;
}

void RowSlot::wait_for_rows() const {
  for (const RowMark& mark : written_) {
    if (!mark->is_idle()) mark->synchronize();
  }
}

void RowSlot::end_read(RowMark mark) {
  const std::lock_guard lock(mutex_);
  std::erase_if(readers_, [](const RowMark& known) { return known->is_idle(); });
  readers_.push_back(std::move(mark));
}

RowArena::RowArena(Device* device, Buffer memory) : device_(device), memory_(std::move(memory)) {
  const std::size_t usable = memory_.bytes() / kAlignment * kAlignment;
  if (usable > 0) holes_.emplace(0, Hole{usable, {}});
}

RowArena::~RowArena() {
  for (const auto& [begin, hole] : holes_) {
    for (const RowMark& mark : hole.marks) {
      try {
        if (!mark->is_idle()) mark->synchronize();
      } catch (...) {  // NOLINT: a queue that fails writes nothing any more
      }
    }
  }
}

std::shared_ptr<RowSlot> RowArena::allocate(std::size_t bytes) {
  const std::size_t needed = rounded(bytes);
  auto slot = std::make_shared<RowSlot>(*this);  // before the lock, which its end takes
  const std::lock_guard lock(mutex_);
  auto best = holes_.end();
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    if (hole->second.bytes < needed) continue;
    if (best == holes_.end() || hole->second.bytes < best->second.bytes) best = hole;
  }
  if (best == holes_.end()) return nullptr;
  slot->earlier_ = best->second.marks;
  slot->data_ = memory_.data() + best->first;
  slot->bytes_ = bytes;
  auto rest = holes_.extract(best);
  rest.key() += needed;
  rest.mapped().bytes -= needed;
  if (rest.mapped().bytes > 0) holes_.insert(std::move(rest));
  return slot;
}

std::size_t RowArena::free_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [begin, hole] : holes_) bytes += hole.bytes;
  return bytes;
}

void RowArena::release(std::size_t begin, Hole hole) {
  tidy(hole.marks);
  const std::lock_guard lock(mutex_);
  const auto place = holes_.emplace(begin, std::move(hole)).first;
  join_with_next(place);
  if (place != holes_.begin()) join_with_next(std::prev(place));
}

void RowArena::join_with_next(Holes::iterator hole) {
  const auto next = std::next(hole);
  if (next == holes_.end() || hole->first + hole->second.bytes != next->first) return;
  std::vector<RowMark>& marks = hole->second.marks;
  marks.insert(marks.end(), next->second.marks.begin(), next->second.marks.end());
  tidy(marks);
  hole->second.bytes += next->second.bytes;
  holes_.erase(next);
}

std::shared_ptr<RowSlot> slot_of_its_own(Buffer memory, std::size_t bytes) {
  struct Alone {
    Alone(Buffer buffer, std::size_t size)
        : arena(nullptr, std::move(buffer)), slot(arena.allocate(size)) {}
    RowArena arena;
    std::shared_ptr<RowSlot> slot;
  };
  const auto alone = std::make_shared<Alone>(std::move(memory), bytes);
  return {alone, alone->slot.get()};
}

}  // namespace fovea
