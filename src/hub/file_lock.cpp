#include "hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

#include "core/check.h"
#include "core/file.h"
#include "core/interrupt.h"

namespace fovea::hub {
namespace {

constexpr mode_t kLockMode = 0666;  // before the umask
constexpr std::chrono::milliseconds kLockLook{50};

}  // namespace

FileLock::FileLock(const std::string& path, LogSink* log) {
  std::error_code failure;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failure);
  file_.reset(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kLockMode));
  FOVEA_CHECK(file_.is_open(), kIo, path, ": cannot open the lock: ", system_reason());
  bool has_told = false;
  while (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    FOVEA_CHECK(errno == EWOULDBLOCK || errno == EINTR, kIo, path,
                ": cannot lock: ", system_reason());
    if (!has_told) {
      log_to(log, LogLevel::kInfo, cat("hub.waits lock=\"", path, "\""));
      has_told = true;
    }
    check_interrupt_of_wait();
    std::this_thread::sleep_for(kLockLook);
  }
}

}  // namespace fovea::hub
