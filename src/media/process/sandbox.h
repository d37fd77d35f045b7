#pragma once

#include <cstdint>

#include "media/process/messages.h"

namespace fovea::media {

/// The means of a decoder process.
struct SandboxLimits {
  std::uint64_t address_bytes = 0;  ///< on top of the address space it has already
  std::uint64_t cpu_seconds = 0;    ///< in all
  int host_pid = 0;                 ///< when this process ends, so does the caller
};

/// Takes from the calling process, which has one thread, everything that decoding does not need,
/// for good: memory and CPU time beyond the limits, core dumps, new privileges, descriptors but
/// one, new processes, and where the system has seccomp, all system calls but those that allocate
/// memory, read and write. A forbidden call ends the process; looking for a file fails instead,
/// because libraries ask for optional ones. Ends the process if the host is gone.
/// @throws Error(kIo) if the system refuses a limit.
[[nodiscard]] Isolation enter_sandbox(const SandboxLimits& limits);

}  // namespace fovea::media
