#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace fovea::test {

/// Leaves this process `spare` bytes of address space until the end of the scope.
class ScarceAddressSpace {
 public:
  explicit ScarceAddressSpace(std::size_t spare) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    limit.rlim_cur = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + spare;
    setrlimit(RLIMIT_AS, &limit);
  }
  ~ScarceAddressSpace() { setrlimit(RLIMIT_AS, &before_); }
  ScarceAddressSpace(const ScarceAddressSpace&) = delete;
  ScarceAddressSpace& operator=(const ScarceAddressSpace&) = delete;

 private:
  rlimit before_{};
};

}  // namespace fovea::test
