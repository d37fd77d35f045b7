#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

#include "core/file_descriptor.h"

namespace fovea {

/// As the system's send() and recv(): how many bytes were moved, or -1 with errno. Over a local
/// socket a copy of an open file may go beside the first of the bytes. Source: unix(7), SCM_RIGHTS.
///
/// Sends without waiting; a closed other end is EPIPE and no signal. @param file -1: none.
[[nodiscard]] ssize_t send_some(int socket, std::span<const std::byte> bytes,
                                int file = -1) noexcept;
/// @param file receives what came beside the bytes; null: it is not wanted, and closed.
/// @param flags of recv(), for example MSG_DONTWAIT.
[[nodiscard]] ssize_t receive_some(int socket, std::span<std::byte> bytes, FileDescriptor* file,
                                   int flags) noexcept;

}  // namespace fovea
