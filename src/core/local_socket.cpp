#include "core/local_socket.h"

#include <sys/socket.h>

#include <array>
#include <cstring>

namespace fovea {

ssize_t send_some(int socket, std::span<const std::byte> bytes, int file) noexcept {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};  // NOLINT: sendmsg only reads
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (file >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &file, sizeof(int));
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t receive_some(int socket, std::span<std::byte> bytes, FileDescriptor* file,
                     int flags) noexcept {
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_LEN(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (file != nullptr) {  // the system closes files for which there is no room here
    message.msg_control = control.data();
    message.msg_controllen = control.size();
  }
  const ssize_t received = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  const cmsghdr* const rights = received > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(rights), sizeof(int));
    file->reset(number);
  }
  return received;
}

}  // namespace fovea
