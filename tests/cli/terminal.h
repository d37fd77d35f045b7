#pragma once

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace fovea::test {

/// What erases the line of a terminal.
inline constexpr const char* kErase = "\r\x1b[K";

/// Puts a pseudo-terminal in the place of stderr while it lives.
class Terminal {
 public:
  /// @throws std::runtime_error if the system has no pseudo-terminals.
  Terminal() : controller_(::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)) {
    const bool ready =
        controller_ >= 0 && ::grantpt(controller_) == 0 && ::unlockpt(controller_) == 0;
    const int terminal = ready ? ::open(::ptsname(controller_), O_RDWR | O_NOCTTY) : -1;
    if (terminal < 0) throw std::runtime_error("no pseudo-terminal");
    stderr_ = ::dup(STDERR_FILENO);
    ::dup2(terminal, STDERR_FILENO);
    ::close(terminal);
  }
  ~Terminal() {
    ::dup2(stderr_, STDERR_FILENO);
    ::close(stderr_);
    ::close(controller_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// What was written since the last call; lines end with "\r\n", as on every terminal. The system
  /// passes text on in its own time: waits until nothing more comes.
  [[nodiscard]] std::string text() const {
    std::string all;
    std::array<char, 4096> buffer{};
    for (pollfd wait{.fd = controller_, .events = POLLIN, .revents = 0};
         ::poll(&wait, 1, 100) > 0;) {
      const ssize_t count = ::read(controller_, buffer.data(), buffer.size());
      if (count <= 0) break;
      all.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return all;
  }

 private:
  int controller_;
  int stderr_ = -1;
};

}  // namespace fovea::test
