#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/tower/core/tensor_view.h"

namespace fovea::checkpoint {

/// Largest header of a file, as in the reference implementation, and highest rank in it, as in
/// PyTorch.
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
inline constexpr std::size_t kMaxEntryRank = 64;

/// One tensor as the header of a file lists it. `dtype` is the file's own name ("BF16", "F8_E4M3"):
/// a file may hold tensors of types Fovea cannot compute with, as long as they are not asked for.
struct TensorEntry {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  ///< offset from the start of the data section, in bytes
  std::uint64_t end = 0;
};

/// The contents of the header of a safetensors file, fully checked against the file size.
struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  ///< ascending by begin
  std::map<std::string, std::string> metadata;
  std::uint64_t data_offset = 0;  ///< of the data section in the file
};

/// Parses and checks a header. `file` is the whole file, or any prefix that holds the header.
/// @param file_bytes size of the whole file.
/// @param name of the file, for messages.
/// @throws Error(kCorruptData), one message per way to be wrong (see safetensors.cpp for the
/// layout); Error(kUnsupported) for a dtype whose size is not known, because then the size of the
/// tensor cannot be checked; Error(kInvalidArgument) if `file` is a prefix without the whole
/// header.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                                         std::uint64_t file_bytes,
                                                         const std::string& name);

/// The dtype and shape of a tensor.
struct TensorLayout {
  DType dtype = DType::kF32;
  Shape shape;
  [[nodiscard]] std::size_t bytes() const { return ConstTensorView{nullptr, dtype, shape}.bytes(); }
};

/// The layout that the listing of a tensor means. @param where its file, for messages.
/// @throws Error(kUnsupported) if the dtype is not one of DType or the rank is above kMaxRank.
[[nodiscard]] TensorLayout layout_of(const std::string& where, std::string_view name,
                                     std::string_view dtype,
                                     const std::vector<std::int64_t>& shape);

/// A safetensors file whose tensors are read when they are asked for. It is not mapped into memory:
/// a file that shrinks meanwhile is an error, not the end of the process. Thread-safe.
class SafetensorsFile {
 public:
  /// Opens the file and reads its header.
  /// @throws Error(kNotFound), Error(kIo), and what parse_safetensors_header throws.
  explicit SafetensorsFile(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;

  [[nodiscard]] const SafetensorsHeader& header() const noexcept;
  [[nodiscard]] const TensorEntry* find(std::string_view name) const noexcept;
  /// @throws Error(kNotFound) if there is none of that name, Error(kUnsupported) if its dtype is
  /// not one of DType or its rank is above kMaxRank.
  [[nodiscard]] TensorLayout layout(std::string_view name) const;
  /// Fills `out` with bytes of a tensor, from `offset` on.
  /// @throws Error(kNotFound) if there is none of that name, Error(kInvalidArgument) if it ends
  /// before `out` does, Error(kIo), also if the file has shrunk.
  void read(std::string_view name, std::size_t offset, std::span<std::byte> out) const;
  /// A tensor whose bytes are read when it is first asked for and kept as long as the object; data
  /// is not null even if the tensor has no elements.
  /// @throws as layout and read.
  [[nodiscard]] ConstTensorView tensor(std::string_view name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A tensor to be written.
struct OutputTensor {
  std::string name;
  ConstTensorView view;  ///< host memory
};

/// Writes a file to `sink`, piece by piece, as write_safetensors below to a path.
void write_safetensors(std::span<const OutputTensor> tensors,
                       const std::map<std::string, std::string>& metadata,
                       const std::function<void(std::span<const std::byte>)>& sink);

/// Writes a file whose header is padded with spaces to a multiple of 8 bytes. Tensors of larger
/// elements come first, otherwise in the given order, so that each is aligned to its element size.
/// The file appears under `path` complete or not at all.
/// @throws Error(kIo) (with the system's reason), Error(kInvalidArgument) for duplicate names and
/// for the name "__metadata__".
void write_safetensors(const std::string& path, std::span<const OutputTensor> tensors,
                       const std::map<std::string, std::string>& metadata);

}  // namespace fovea::checkpoint
