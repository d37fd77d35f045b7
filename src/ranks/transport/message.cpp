#include "ranks/transport/message.h"

#include <string_view>

#include "core/check.h"
#include "fovea/text.h"

namespace fovea::ranks {

Transfer receive_message(int socket, Message& message, Clock::time_point deadline,
                         FileDescriptor* descriptor) noexcept {
  const auto bytes = std::as_writable_bytes(std::span(&message, 1));
  const Transfer transfer = receive_all(socket, bytes, deadline, descriptor);
  return transfer == Transfer::kDone && !is_ours(message) ? Transfer::kClosed : transfer;
}

void send_failure(int socket, const Error& error, Clock::time_point deadline) noexcept {
  const std::string_view text = error.what();
  const Message message{.kind = MessageKind::kFail,
                        .rank = static_cast<std::int32_t>(error.code()),
                        .bytes = text.size()};
  if (send_all(socket, bytes_of(message), deadline) != Transfer::kDone) return;
  (void)send_all(socket, std::as_bytes(std::span(text)), deadline);
}

std::optional<Error> receive_failure(int socket, const Message& message,
                                     Clock::time_point deadline) {
  if (message.bytes > kMaxMessageBytes) return std::nullopt;
  std::string text(message.bytes, '\0');
  const auto bytes = std::as_writable_bytes(std::span(text));
  if (receive_all(socket, bytes, deadline) != Transfer::kDone) return std::nullopt;
  return Error(error_code(message.rank), printable(text));
}

ErrorCode error_code(std::int32_t number) noexcept {
  const bool known = number >= 0 && number <= static_cast<std::int32_t>(ErrorCode::kInternal);
  return known ? static_cast<ErrorCode>(number) : ErrorCode::kInternal;
}

std::string name_ranks(std::span<const int> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += cat(i == 0 ? "" : ", ", ranks[i]);
  return text;
}

}  // namespace fovea::ranks
