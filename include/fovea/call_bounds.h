#pragma once

#include <chrono>
#include <stop_token>

namespace fovea {

/// When a call is to end although its work is not done. The call then throws Error(kCancelled) or
/// Error(kDeadline), on a CPU after some milliseconds, on a GPU after the sub-batch or the graph it
/// is at. Whatever it worked on is as usable as before: the next call gives the same bits as if
/// this one had not been. A file, or a step of a library, that cannot be interrupted is waited for.
struct CallBounds {
  std::stop_token stop = {};  ///< of a std::stop_source or std::jthread; empty: nobody stops it
  /// The latest moment for the result; what is not done by then is given up.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

}  // namespace fovea
