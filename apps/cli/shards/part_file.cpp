// A part beside the lines of its items.
#include "shards/manifest_check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include "core/file_descriptor.h"
#include "fovea/error.h"
#include "fovea/row_formats.h"

namespace fovea::cli {
namespace {

/// The bytes of a file, which the system reads when they are looked at.
class Mapping {
 public:
  explicit Mapping(const std::string& path) {
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    found_ = file.is_open() && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
    if (!found_) return;
    bytes_ = static_cast<std::size_t>(status.st_size);
    if (bytes_ > 0) data_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  }
  ~Mapping() {
    if (mapped()) ::munmap(data_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] bool found() const noexcept { return found_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    if (!mapped()) return {};
    return {static_cast<const std::byte*>(data_), bytes_};
  }

 private:
  [[nodiscard]] bool mapped() const noexcept { return data_ != nullptr && data_ != MAP_FAILED; }

  bool found_ = false;
  std::size_t bytes_ = 0;
  void* data_ = nullptr;
};

/// Names of tensors of rows, with their shapes.
std::map<std::string, std::vector<std::int64_t>> tensors_of_rows(std::span<const std::byte> file,
                                                                 const std::string& path) {
  std::map<std::string, std::vector<std::int64_t>> tensors;
  for (StoredTensor& tensor : read_safetensors(file, path)) {
    if (tensor.name.find('.') != std::string::npos) continue;  // the grid of an item
    tensors.emplace(std::move(tensor.name), std::move(tensor.shape));
  }
  return tensors;
}

}  // namespace

std::optional<std::string> problem_of_part(const std::string& path, const PartLine& part,
                                           const std::vector<ItemLine>& items) {
  const Mapping file(path);
  if (!file.found()) return path + ": this part is missing; --resume encodes its items again";
  if (!std::cmp_equal(file.size(), part.bytes)) {
    return path + ": expected " + std::to_string(part.bytes) + " bytes, got " +
           std::to_string(file.size()) + "; --resume encodes its items again";
  }
  try {
    auto tensors = tensors_of_rows(file.bytes(), path);
    for (const ItemLine& item : items) {
      if (!item.error.empty()) continue;
      const auto tensor = tensors.find(item.tensor);
      if (tensor == tensors.end()) {
        return path + ": expected a tensor " + item.tensor + " of its own for " + item.name.path;
      }
      if (tensor->second != std::vector<std::int64_t>{item.rows, item.width}) {
        return path + ": " + item.tensor + " has another shape than the line of " + item.name.path;
      }
      tensors.erase(tensor);
    }
    if (tensors.empty()) return std::nullopt;
    return path + ": no line names its tensor " + tensors.begin()->first;
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace fovea::cli
