#include "serve/routes/llm/rewritten_body.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "core/json_writer.h"
#include "fovea/error.h"
#include "serve/text/json.h"

namespace fovea::serve {
namespace {

/// Writes the request, and the next part wherever its path comes by.
class Rewriting {
 public:
  Rewriting(std::vector<ReplacedPart> parts, std::span<const std::string_view> left_out)
      : parts_(std::move(parts)), left_out_(left_out) {
    std::size_t size = 0;
    for (const ReplacedPart& part : parts_) size += part.json.size();
    out_.reserve(size);
  }

  std::string run(const JsonView& body) && {
    write_members(body, left_out_, "messages", [&](const JsonView& messages) {
      write_elements(messages, "messages", [&](const JsonView& message, const std::string& path) {
        write_message(message, path);
      });
    });
    if (next_ != parts_.size()) {
      throw Error(ErrorCode::kInternal, "rewritten_body: no place for " + parts_[next_].param);
    }
    return std::move(out_);
  }

 private:
  void write_message(const JsonView& message, const std::string& path) {
    if (!message.is_object()) return message.append_to(out_);
    write_members(message, {}, "content", [&](const JsonView& content) {
      const std::string where = path + ".content";
      if (!content.is_array()) return write_part(content, where);
      write_elements(content, where, [&](const JsonView& part, const std::string& place) {
        write_part(part, place);
      });
    });
  }

  void write_part(const JsonView& part, const std::string& path) {
    if (next_ == parts_.size() || parts_[next_].param != path) return part.append_to(out_);
    out_ += std::exchange(parts_[next_++].json, {});
  }

  /// An object without some members, of which `write` writes one.
  template <class Write>
  void write_members(const JsonView& object, std::span<const std::string_view> left_out,
                     std::string_view name, const Write& write) {
    out_ += '{';
    bool is_first = true;
    for (std::size_t i = 0; i < object.num_members(); ++i) {
      if (std::ranges::find(left_out, object.key(i)) != left_out.end()) continue;
      if (!std::exchange(is_first, false)) out_ += ',';
      append_json(out_, object.key(i));
      out_ += ':';
      if (object.key(i) == name) {
        write(object.member(i));
      } else {
        object.member(i).append_to(out_);
      }
    }
    out_ += '}';
  }

  template <class Write>
  void write_elements(const JsonView& array, const std::string& where, const Write& write) {
    out_ += '[';
    for (std::size_t i = 0; i < array.num_elements(); ++i) {
      if (i > 0) out_ += ',';
      write(array.element(i), element_path(where, i));
    }
    out_ += ']';
  }

  std::vector<ReplacedPart> parts_;
  std::span<const std::string_view> left_out_;
  std::size_t next_ = 0;
  std::string out_;
};

}  // namespace

std::string rewritten_body(const JsonView& body, std::vector<ReplacedPart> parts,
                           std::span<const std::string_view> left_out) {
  return Rewriting(std::move(parts), left_out).run(body);
}

}  // namespace fovea::serve
