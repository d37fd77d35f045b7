// Progress on the status line.
#include "progress.h"

namespace fovea::cli {

Progress::Progress(Console& console, std::string label, std::int64_t total)
    : console_(console), label_(std::move(label)), total_(total) {
  show();
}

Progress::~Progress() { console_.set_status(""); }

void Progress::advance() {
  ++done_;
  show();
}

void Progress::set(std::int64_t done, std::int64_t total) {
  done_ = done;
  total_ = total;
  show();
}

void Progress::show() {
  std::string text = label_;
  if (total_ > 0)
    text.append(" ").append(std::to_string(done_)).append("/").append(std::to_string(total_));
  console_.set_status(text);
}

}  // namespace fovea::cli
