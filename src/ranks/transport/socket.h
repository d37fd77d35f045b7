#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <utility>

#include "core/file_descriptor.h"
#include "core/local_socket.h"

namespace fovea::ranks {

using Clock = std::chrono::steady_clock;

/// Sends all of `bytes`, until `deadline`. @param descriptor goes with them as a copy; -1: none
/// (local sockets only).
[[nodiscard]] Transfer send_all(int socket, std::span<const std::byte> bytes,
                                Clock::time_point deadline, int descriptor = -1) noexcept;
/// Fills all of `bytes`, until `deadline`. @param descriptor receives what came with them; null: it
/// is not wanted.
[[nodiscard]] Transfer receive_all(int socket, std::span<std::byte> bytes,
                                   Clock::time_point deadline,
                                   FileDescriptor* descriptor = nullptr) noexcept;

/// Takes bytes that are there, without waiting. @return how many, 0 if none are there yet, -1 if
/// the other end is closed.
[[nodiscard]] ssize_t receive_now(int socket, std::span<std::byte> bytes) noexcept;

/// Milliseconds until `deadline` as poll() takes them: -1 for ever, 0 if it has passed.
[[nodiscard]] int poll_timeout(Clock::time_point deadline) noexcept;

/// Two connected local sockets. @throws Error(kIo).
[[nodiscard]] std::pair<FileDescriptor, FileDescriptor> socket_pair();

}  // namespace fovea::ranks
