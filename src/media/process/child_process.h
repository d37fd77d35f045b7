#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/file_descriptor.h"

namespace fovea::media {

/// A running process that this one started, and the socket on which the two talk. Ends and reaps
/// it in the destructor. Touches no signal handler and no other child. Move-only.
class ChildProcess {
 public:
  /// Starts `program` with the socket as its standard input, nothing behind its standard output
  /// and error, no other descriptor, no environment but LD_LIBRARY_PATH and the folder of the
  /// program as FOVEA_PLUGIN_DIR, no blocked or ignored signal, and in a session of its own:
  /// signals of a terminal do not reach it.
  /// @throws Error(kUnavailable) with the system's reason.
  ChildProcess(const std::string& program, const std::vector<std::string>& arguments);
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  /// Send or fill all of `bytes`. @return false if the process has closed its end.
  /// @param descriptor a copy of it goes with the first of the bytes; -1: none.
  /// @throws as check_interrupt, which is called every few milliseconds, Error(kIo).
  [[nodiscard]] bool send(std::span<const std::uint8_t> bytes, int descriptor = -1);
  [[nodiscard]] bool receive(std::span<std::uint8_t> bytes);

  /// Whether it still runs.
  [[nodiscard]] bool is_running();
  /// Ends the process unless it ends by itself within a second; it cannot be used afterwards.
  /// @return the number of the signal that ended it, 0 if it exited.
  [[nodiscard]] int end();

 private:
  /// Waits for an event of the socket, a few milliseconds at most. @return true.
  [[nodiscard]] bool wait(short events) const;
  void kill() noexcept;

  int pid_ = -1;  ///< -1: there is none, or it was reaped
  FileDescriptor socket_;
  int status_ = 0;  ///< as waitpid gave it
};

/// Starts processes on a thread of its own: Linux tells a process that its parent is gone when the
/// thread that started it ends, and threads of callers come and go. Thread-safe.
class ProcessStarter {
 public:
  ProcessStarter();
  ~ProcessStarter();
  ProcessStarter(const ProcessStarter&) = delete;
  ProcessStarter& operator=(const ProcessStarter&) = delete;

  /// As the constructor of ChildProcess, and waits for it.
  [[nodiscard]] ChildProcess start(const std::string& program,
                                   const std::vector<std::string>& arguments);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fovea::media
