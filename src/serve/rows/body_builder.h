#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_writer.h"
#include "fovea/row_formats.h"
#include "serve/http/message.h"

namespace fovea::serve {

/// The members of a reply beside its rows, of all routes that encode.
struct ReplyHead {
  std::string id = {};       ///< "enc-...", "embd-..."
  std::int64_t created = 0;  ///< seconds since 1970, UTC
  std::string model = {};
  std::int64_t hidden = 0;                   ///< columns of the main embedding
  std::int64_t max_json_values = 4'000'000;  ///< most numbers in JSON
  std::shared_ptr<const void> room = {};     ///< goes when the reply has been sent; may be null
};

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

/// How a list of JSON begins: {"id": .., "object": .., "created": .., "model": .., "data":[
[[nodiscard]] std::string list_start(const ReplyHead& head, std::string_view object);
/// {"prompt_tokens": .., "total_tokens": ..}: the rows before pooling.
[[nodiscard]] JsonObject usage_of(std::int64_t rows);

/// A reply with a body of JSON that holds `room` until it has been sent.
[[nodiscard]] Reply json_reply(std::string text, const std::shared_ptr<const void>& room);

}  // namespace fovea::serve
