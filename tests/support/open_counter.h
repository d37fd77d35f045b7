#pragma once

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "core/file_descriptor.h"

namespace fovea::test {

/// Counts how often a file is opened, one reader after the other.
class OpenCounter {
 public:
  explicit OpenCounter(const std::string& path) : events_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    // The system joins equal events in a row; those of closing stand between.
    const int watch = inotify_add_watch(events_.get(), path.c_str(), IN_OPEN | IN_CLOSE);
    EXPECT_GE(watch, 0) << path;
  }

  /// Since the last call.
  [[nodiscard]] int take() {
    int count = 0;
    alignas(inotify_event) std::array<char, 4096> buffer{};
    for (ssize_t size = 0; (size = read(events_.get(), buffer.data(), buffer.size())) > 0;) {
      for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
        inotify_event event{};
        std::memcpy(&event, buffer.data() + at, sizeof(event));
        if ((event.mask & IN_OPEN) != 0) ++count;
        at += sizeof(event) + event.len;
      }
    }
    return count;
  }

 private:
  FileDescriptor events_;
};

}  // namespace fovea::test
