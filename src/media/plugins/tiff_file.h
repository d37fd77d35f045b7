#pragma once

#include <tiffio.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "media/bytes.h"

namespace fovea::media {

/// An open TIFF file in memory, at its first directory. libtiff writes nothing to stderr: its first
/// complaint is the reason of the error that check() throws; warnings are dropped.
class TiffFile {
 public:
  /// @param file, name must outlive the object. @param most_bytes that libtiff may allocate at
  /// once.
  /// @throws Error(kCorruptData) if there is no directory.
  TiffFile(Bytes file, std::string_view name, std::size_t most_bytes);
  TiffFile(const TiffFile&) = delete;
  TiffFile& operator=(const TiffFile&) = delete;

  [[nodiscard]] TIFF* get() const noexcept { return tiff_.get(); }
  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  [[nodiscard]] Bytes bytes() const noexcept { return file_; }

  /// @throws Error(kCorruptData) with libtiff's reason if `is_good` is false.
  void check(bool is_good) const;

  /// A field of one number, or its default.
  template <class T>
  [[nodiscard]] T field(std::uint32_t tag, T otherwise) const {
    T value{};
    return TIFFGetField(tiff_.get(), tag, &value) == 1 ? value : otherwise;
  }

  /// Whether the first directory has an entry: libtiff adds some that the file lacks.
  [[nodiscard]] bool has_entry(std::uint16_t tag) const;

 private:
  /// The callbacks through which libtiff reads.
  struct Io;
  struct Close {
    void operator()(TIFF* tiff) const noexcept { TIFFClose(tiff); }
  };

  Bytes file_;
  std::uint64_t at_ = 0;
  std::string_view name_;
  std::string reason_;
  std::unique_ptr<TIFF, Close> tiff_;
};

}  // namespace fovea::media
