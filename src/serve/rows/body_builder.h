#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/row_formats.h"
#include "serve/http/message.h"

namespace fovea::serve {

/// Puts the body of a reply together: text is copied, elements stay where they are.
class BodyBuilder {
 public:
  /// Bytes that add() knows by their address, and refers to in place of copying them.
  void keep(const BodyPart& part);
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);
  /// add(), for the writers of files. The builder must outlive it.
  [[nodiscard]] ByteSink sink();
  /// The parts. @param room goes when the last of them does; may be null.
  [[nodiscard]] std::vector<BodyPart> finish(const std::shared_ptr<const void>& room);

 private:
  void end_copied();

  std::map<const std::byte*, BodyPart> kept_;
  std::vector<std::byte> copied_;  // behind the last of parts_
  std::vector<BodyPart> parts_;
};

/// A reply with the bytes of a builder. @param room as in finish().
[[nodiscard]] Reply binary_reply(BodyBuilder& body, const std::shared_ptr<const void>& room);

/// A reply with a body of JSON that holds `room` until it has been sent.
[[nodiscard]] Reply json_reply(std::string text, const std::shared_ptr<const void>& room);

}  // namespace fovea::serve
