#pragma once

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>

#include "core/file_descriptor.h"
#include "support/temporary_directory.h"

namespace fovea::test {

/// A copy of a file that counts how often it is opened, one reader after the other. A file that
/// other tests read too, in processes beside this one, would count theirs.
class CountedFile {
 public:
  explicit CountedFile(const std::filesystem::path& original)
      : path_(folder_ / original.filename().string()) {
    std::filesystem::copy_file(original, path_);
    // The system joins equal events in a row; those of closing stand between.
    const int watch = inotify_add_watch(events_.get(), path_.c_str(), IN_OPEN | IN_CLOSE);
    EXPECT_GE(watch, 0) << path_;
  }

  [[nodiscard]] const std::string& path() const { return path_; }

  /// Since the last call.
  [[nodiscard]] int take_opens() {
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
  TemporaryDirectory folder_;
  std::string path_;
  FileDescriptor events_{inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
};

}  // namespace fovea::test
