// libtiff over bytes in memory. A TIFF file begins with a byte order ("II" or "MM"), a 42 and the
// offset of a directory: a count (2) and entries of 12 bytes, which begin with their tag (2). A
// BigTIFF file has a 43, the size of offsets (2) and a 0 (2); its offsets and counts have 8 bytes,
// its entries 20.
#include "media/plugins/tiff_file.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "core/check.h"

namespace fovea::media {

struct TiffFile::Io {
  static TiffFile& of(thandle_t handle) { return *static_cast<TiffFile*>(handle); }

  static tmsize_t read(thandle_t handle, void* out, tmsize_t count) {
    TiffFile& file = of(handle);
    const std::size_t at = std::min<std::uint64_t>(file.at_, file.file_.size());
    const std::size_t taken = std::min(static_cast<std::size_t>(count), file.file_.size() - at);
    std::memcpy(out, file.file_.data() + at, taken);
    file.at_ = at + taken;
    return static_cast<tmsize_t>(taken);
  }
  static tmsize_t write(thandle_t, void*, tmsize_t) { return 0; }
  static toff_t seek(thandle_t handle, toff_t offset, int whence) {
    TiffFile& file = of(handle);
    if (whence == SEEK_CUR) offset += file.at_;
    if (whence == SEEK_END) offset += file.file_.size();
    return file.at_ = offset;
  }
  static int close(thandle_t) { return 0; }
  static toff_t size(thandle_t handle) { return of(handle).file_.size(); }
  static int map(thandle_t handle, void** base, toff_t* size) {
    *base = const_cast<std::uint8_t*>(of(handle).file_.data());  // opened for reading
    *size = of(handle).file_.size();
    return 1;
  }
  static void unmap(thandle_t, void*, toff_t) {}

  static int keep_reason(TIFF*, void* user, const char*, const char* format, std::va_list values) {
    TiffFile& file = of(user);
    if (!file.reason_.empty()) return 1;
    char text[256];
    if (std::vsnprintf(text, sizeof(text), format, values) > 0) file.reason_ = text;
    return 1;
  }
  static int ignore(TIFF*, void*, const char*, const char*, std::va_list) { return 1; }
};

TiffFile::TiffFile(Bytes file, std::string_view name, std::size_t most_bytes)
    : file_(file), name_(name) {
  const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> options(
      TIFFOpenOptionsAlloc(), TIFFOpenOptionsFree);
  if (!options) throw std::bad_alloc();
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), static_cast<tmsize_t>(most_bytes));
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), Io::keep_reason, this);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), Io::ignore, this);
  tiff_.reset(TIFFClientOpenExt("image", "r", this, Io::read, Io::write, Io::seek, Io::close,
                                Io::size, Io::map, Io::unmap, options.get()));
  check(tiff_ != nullptr);
}

void TiffFile::check(bool is_good) const {
  FOVEA_CHECK(is_good, kCorruptData, name_,
              ": cannot decode TIFF: ", reason_.empty() ? "the file is damaged" : reason_);
}

bool TiffFile::has_entry(std::uint16_t tag) const {
  const bool big_endian = TIFFIsBigEndian(tiff_.get()) != 0;
  const auto number = [&](std::uint64_t at, std::size_t count) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < count && at + i < file_.size(); ++i)
      value |= std::uint64_t{file_[at + i]} << 8 * (big_endian ? count - 1 - i : i);
    return value;
  };
  const bool is_big_tiff = TIFFIsBigTIFF(tiff_.get()) != 0;
  const std::size_t count_bytes = is_big_tiff ? 8 : 2;
  const std::size_t entry_bytes = is_big_tiff ? 20 : 12;
  const std::uint64_t directory = TIFFCurrentDirOffset(tiff_.get());
  std::uint64_t entry = directory + count_bytes;
  for (std::uint64_t left = number(directory, count_bytes); left > 0 && entry < file_.size();
       --left, entry += entry_bytes)
    if (number(entry, 2) == tag) return true;
  return false;
}

}  // namespace fovea::media
