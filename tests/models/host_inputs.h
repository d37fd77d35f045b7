#pragma once

#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/tower/models/inputs.h"
#include "fovea/tower/models/item_processor.h"

namespace fovea::test {

/// Host memory for the input buffers of one run. Bytes that nobody writes are 0xEE.
class HostInputs {
 public:
  explicit HostInputs(std::vector<BufferDecl> decls) : decls_(std::move(decls)) {
    for (const BufferDecl& decl : decls_) {
      const std::size_t bytes = ConstTensorView{nullptr, decl.dtype, decl.shape}.bytes();
      memory_.emplace_back(bytes, std::byte{0xEE});
      slots_.push_back({.decl = &decl, .memory = memory_.back().data()});
    }
  }
  HostInputs(const HostInputs&) = delete;
  HostInputs& operator=(const HostInputs&) = delete;

  /// Calls write(InputWriter&), then makes the copies that it asked for.
  template <class Write>
  void fill(Write&& write) {
    std::vector<InputWriter::Copy> copies;
    InputWriter writer(slots_, copies);
    write(writer);
    for (const auto& [to, from] : copies) std::memcpy(to, from.data(), from.size());
  }

  /// All buffers at their capacity.
  [[nodiscard]] NamedTensors tensors() {
    NamedTensors named;
    for (std::size_t i = 0; i < decls_.size(); ++i) {
      named.add(decls_[i].name, {memory_[i].data(), decls_[i].dtype, decls_[i].shape});
    }
    return named;
  }
  [[nodiscard]] const std::vector<BufferDecl>& decls() const noexcept { return decls_; }
  /// Rows that the last fill claimed of a buffer.
  [[nodiscard]] std::int64_t rows_of(std::string_view name) const {
    for (const InputWriter::Slot& slot : slots_) {
      if (slot.decl->name == name) return slot.rows_written;
    }
    return -1;
  }

 private:
  std::vector<BufferDecl> decls_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<InputWriter::Slot> slots_;
};

/// All units that the items have on a path.
[[nodiscard]] inline std::vector<ItemPart> whole_items(std::span<const PreparedItem> items,
                                                       int path = 0) {
  std::vector<ItemPart> parts;
  for (const PreparedItem& item : items) {
    if (item.plan.spec.units_on(path).count > 0) parts.push_back(ItemPart::whole(item, path));
  }
  return parts;
}

/// The first `count` numbers of a buffer.
[[nodiscard]] inline std::vector<std::int32_t> ints(const ConstTensorView& view,
                                                    std::int64_t count) {
  return {view.as<std::int32_t>(), view.as<std::int32_t>() + count};
}

}  // namespace fovea::test
