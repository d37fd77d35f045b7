// Read-only file mappings. The mapping outlives the descriptor it was made from.
#include "core/mapped_file.h"

#include "core/check.h"
#include "core/file.h"

#include <sys/mman.h>
#include <cerrno>
#include <system_error>
#include <utility>

namespace fovea {

MappedFile::MappedFile(const std::string& path) {
  const InputFile file(path);
  if (file.size_bytes() == 0) return;  // mmap refuses length 0
  void* const address =
      mmap(nullptr, file.size_bytes(), PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  FOVEA_CHECK(address != MAP_FAILED, kIo, path, ": cannot map ", file.size_bytes(),
              " bytes: ", std::generic_category().message(errno));
  data_ = static_cast<std::byte*>(address);
  size_bytes_ = file.size_bytes();
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, size_bytes_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);  // the old mapping dies with `other`
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

}  // namespace fovea
