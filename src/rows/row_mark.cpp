// Points that queues have come to.
#include "rows/row_mark.h"

#include <algorithm>

namespace fovea {

RowMark RowMarks::after(Stream& queue) {
  const std::lock_guard lock(mutex_);
  auto mark = std::ranges::find_if(
      all_, [](const RowMark& known) { return known.use_count() == 1 && known->is_idle(); });
  if (mark == all_.end()) mark = all_.insert(all_.end(), device_.create_copy_stream());
  (*mark)->wait_for(queue);
  return *mark;
}

}  // namespace fovea
