#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/export.h"
#include "fovea/tower/core/tensor_view.h"

namespace fovea {

/// What the tail of an input buffer, beyond what an item batch fills, must hold at replay.
enum class PadRule : std::uint8_t {
  kKeep,        ///< anything: live counts keep it from being read
  kRepeatLast,  ///< the last row written, repeated: offsets must not decrease
};

/// One named input of a path's forward. Declared, not handed over, so that the manager can allocate
/// all of them in one block, check capacities before it copies, and know how to pad.
struct BufferDecl {
  std::string name;
  DType dtype = DType::kI32;
  Shape shape;  ///< at capacity; axis 0 is what batches fill
  PadRule pad = PadRule::kKeep;
};

/// Tensors by name, in order of declaration.
class FOVEA_API NamedTensors {
 public:
  void add(std::string name, TensorView view) { entries_.emplace_back(std::move(name), view); }
  /// @throws Error(kInternal) if there is none of that name.
  [[nodiscard]] TensorView operator[](std::string_view name) const;
  [[nodiscard]] const std::vector<std::pair<std::string, TensorView>>& entries() const noexcept {
    return entries_;
  }

 private:
  std::vector<std::pair<std::string, TensorView>> entries_;
};

/// Host memory that a model fills before a run; the graph manager makes it.
class FOVEA_API InputWriter {
 public:
  struct Slot {
    const BufferDecl* decl = nullptr;
    std::byte* memory = nullptr;     ///< host, decl->shape at capacity
    std::int64_t rows_written = -1;  ///< -1: not claimed in this fill
    bool too_small = false;          ///< a claim asked for more rows than there are
  };
  /// Bytes to be copied once filling is done.
  struct Copy {
    std::byte* to;
    std::span<const std::uint8_t> from;
  };
  InputWriter(std::span<Slot> slots, std::vector<Copy>& copies) noexcept
      : slots_(slots), copies_(copies) {}

  /// Claims the first `rows` entries along axis 0 of a buffer and returns them for writing; every
  /// element must then be written.
  /// @throws Error(kUnavailable) if the buffer holds fewer rows: the batch must run elsewhere.
  /// @throws Error(kInternal) for an unknown name.
  [[nodiscard]] TensorView claim(std::string_view name, std::int64_t rows);
  /// Has the bytes of an item copied to `to`, inside a claimed buffer: like memcpy, but after the
  /// model has filled everything, and by several threads where there is much to copy.
  void copy(std::byte* to, std::span<const std::uint8_t> from) {
    if (!from.empty()) copies_.push_back({to, from});
  }

 private:
  [[nodiscard]] Slot& slot(std::string_view name);
  std::span<Slot> slots_;
  std::vector<Copy>& copies_;
};

}  // namespace fovea
