// Where tensors come from: one file, the shards of an index, the caller, or a hash.
//
// The index (model.safetensors.index.json) is an object whose member "weight_map" maps the name of
// a tensor to the name of the file in the same directory that holds it.
#include "fovea/tower/checkpoint/weight_source.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <mutex>
#include <thread>

#include "checkpoint/dummy_weights.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_format.h"
#include "checkpoint/scaled_weights.h"
#include "core/boundary.h"
#include "core/check.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/json_writer.h"

namespace fovea::checkpoint {

namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr const char* kExtension = ".safetensors";
constexpr const char* kHandedOver = "tensors handed over";

/// Whether a name can only mean a file in the same directory.
bool is_plain_file_name(std::string_view name) {
  constexpr std::string_view kForbidden("/\\\0", 3);
  return !name.empty() && name != "." && name.find("..") == std::string_view::npos &&
         name.find_first_of(kForbidden) == std::string_view::npos;
}

/// The file of every tensor, by the tensor's name.
std::map<std::string, std::string> read_index(const std::string& path) {
  const JsonDocument document = JsonDocument::read(path);
  const JsonView weight_map = document.root().at("weight_map");
  std::map<std::string, std::string> files;
  for (const std::string_view tensor : weight_map.keys()) {
    const std::string file = weight_map.at(tensor).as_string();
    FOVEA_CHECK(is_plain_file_name(file), kCorruptData, path, ": shard name ", json_quote(file),
                " is not a plain file name");
    files.emplace(tensor, file);
  }
  return files;
}

/// Whether the extension is that of a weight format that Fovea does not read.
bool is_foreign(std::string_view name) {
  constexpr std::array<std::string_view, 7> kExtensions{".bin",  ".pt",   ".pth", ".ckpt",
                                                        ".gguf", ".onnx", ".h5"};
  return std::ranges::any_of(kExtensions,
                             [&](auto extension) { return name.ends_with(extension); });
}

/// "model-00002-of-00003.safetensors" in parts.
struct ShardName {
  std::string_view stem;  ///< "model"
  int index = 0;
  int count = 0;
};

std::optional<ShardName> parse_shard_name(std::string_view name) {
  constexpr std::size_t kDigits = 5;
  constexpr std::string_view kOf = "-of-";
  if (!name.ends_with(kExtension)) return std::nullopt;
  name.remove_suffix(std::string_view(kExtension).size());
  constexpr std::size_t kTail = 1 + kDigits + kOf.size() + kDigits;  // "-00002-of-00003"
  if (name.size() <= kTail) return std::nullopt;
  const std::string_view tail = name.substr(name.size() - kTail);
  if (tail[0] != '-' || tail.substr(1 + kDigits, kOf.size()) != kOf) return std::nullopt;
  ShardName shard{.stem = name.substr(0, name.size() - kTail)};
  const auto read = [](std::string_view digits, int& number) {
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), number);
    return error == std::errc() && end == digits.end();
  };
  const bool is_shard =
      read(tail.substr(1, kDigits), shard.index) && read(tail.substr(kTail - kDigits), shard.count);
  return is_shard ? std::optional(shard) : std::nullopt;
}

/// Whether the ascending names are shards of one set. @throws Error(kNotFound) for a set that lacks
/// one of them.
bool are_one_set(const std::string& directory, const std::vector<std::string>& names) {
  std::optional<ShardName> first;
  int next = 1;
  for (const std::string& name : names) {
    const std::optional<ShardName> shard = parse_shard_name(name);
    if (!shard) return false;
    if (!first) first = shard;
    if (shard->stem != first->stem || shard->count != first->count) return false;
    FOVEA_CHECK(shard->index == next, kNotFound, directory, ": shard ", next, " of ", first->count,
                " is missing, the next one is ", name);
    ++next;
  }
  FOVEA_CHECK(!first || next == first->count + 1, kNotFound, directory, ": shard ", next, " of ",
              first->count, " is missing, the last one is ", names.back());
  return first.has_value();
}

/// The only file of its kind in a directory without the usual names, or all shards of one set.
std::vector<std::string> unindexed_files(const std::string& directory) {
  const std::vector<std::string> all = list_directory(directory);
  std::vector<std::string> found;
  std::string foreign;
  for (const std::string& name : all) {
    if (name.ends_with(kExtension)) found.push_back(name);
    if (is_foreign(name)) foreign += cat(foreign.empty() ? ": " : ", ", name);
  }
  FOVEA_CHECK(!found.empty() || foreign.empty(), kNotFound, directory, ": expected weights as ",
              kSingleFile, ", ", kIndexFile, ", all shards of one set or one other *", kExtension,
              " file, found another format", foreign);
  FOVEA_CHECK(found.size() == 1 || are_one_set(directory, found), kNotFound, directory,
              ": expected ", kSingleFile, ", ", kIndexFile,
              ", all shards of one set or one other *", kExtension, " file, found ", found.size(),
              " such files");
  return found;
}

/// Host memory that grows as needed. Its old bytes are lost then, its new ones not set.
class Memory {
 public:
  [[nodiscard]] std::byte* get(std::size_t bytes) {
    if (bytes > capacity_ || bytes_ == nullptr) {
      capacity_ = 0;
      bytes_.reset();  // first, so that the two never exist together
      bytes_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      capacity_ = bytes;
    }
    return bytes_.get();
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;  // a vector would zero them
  std::size_t capacity_ = 0;
};

/// Whether it is a dtype that numbers are widened to float32 from.
bool is_float(std::string_view dtype) {
  return dtype == "F32" || dtype == "BF16" || dtype == "F16";
}

bool is_norm_weight(std::string_view name, const Shape& shape) {
  return shape.rank() == 1 && name.ends_with(".weight");
}

}  // namespace

struct WeightSource::Impl {
  /// A file that is opened when one of its tensors is first asked for.
  struct Shard {
    std::mutex mutex;  // guards the member below until it is set; held while the file is opened
    std::optional<SafetensorsFile> file;
  };

  [[nodiscard]] std::string path_of(const std::string& file) const {
    return directory + "/" + file;
  }

  /// The file that holds a tensor, opened.
  const SafetensorsFile& file_with(const std::string& tensor) {
    const auto it = shard_names.find(tensor);
    FOVEA_CHECK(it != shard_names.end(), kNotFound, directory, ": no tensor ", json_quote(tensor));
    Shard& shard = shards.at(it->second);
    const std::string path = path_of(it->second);
    const std::lock_guard lock(shard.mutex);
    if (!shard.file) {
      FOVEA_CHECK(path_exists(path), kNotFound, path,
                  ": no such file, but the index says that it holds ", json_quote(tensor));
      shard.file.emplace(path);
    }
    FOVEA_CHECK(shard.file->find(tensor) != nullptr, kCorruptData, path, ": no tensor ",
                json_quote(tensor), ", but the index says that this file holds it");
    return *shard.file;
  }

  void add_tensor(const std::string& tensor, const std::string& shard) {
    const auto [known, is_new] = shard_names.emplace(tensor, shard);
    FOVEA_CHECK(is_new, kCorruptData, directory, ": tensor ", json_quote(tensor), " is both in ",
                known->second, " and in ", shard);
    shards.try_emplace(shard);
  }

  /// Where tensors go that the current thread asks for.
  Memory& own_memory() {
    const std::lock_guard lock(mutex);
    return memory_of_threads[std::this_thread::get_id()];
  }

  ConstTensorView dummy_tensor(const std::string& name, const Shape& shape) {
    const auto count = static_cast<std::size_t>(shape.elements());
    std::byte* const data = own_memory().get(count * size_of(DType::kBF16));
    fill_dummy_weights(seed, name, is_norm_weight(name, shape) ? 1.0f : 0.0f,
                       std::span(reinterpret_cast<std::uint16_t*>(data), count));
    return {data, DType::kBF16, shape};
  }

  [[nodiscard]] std::size_t index_of(const std::string& name) const {
    const auto it = handed_over.find(name);
    FOVEA_CHECK(it != handed_over.end(), kNotFound, directory, ": no tensor ", json_quote(name),
                " in the ", kHandedOver);
    return it->second;
  }

  /// A tensor as its file or the caller lists it, without scales.
  std::optional<Listing> find(const std::string& name) {
    if (caller != nullptr) {
      const auto it = handed_over.find(name);
      if (it == handed_over.end()) return std::nullopt;
      const WeightTensors::Listing& listing = caller->listings[it->second];
      return Listing{name, listing.dtype, listing.shape, kHandedOver};
    }
    const auto it = shard_names.find(name);
    if (it == shard_names.end()) return std::nullopt;
    const TensorEntry& entry = *file_with(name).find(name);
    return Listing{name, entry.dtype, entry.shape, it->second};
  }

  /// The same, with scales.
  std::optional<Listing> find_with_scales(const std::string& name) {
    std::optional<Listing> found = find(name);
    if (!found || found->dtype != file_name_of(DType::kF8E4M3)) return found;
    for (const char* suffix : {"_scale", "_scale_inv"}) {
      const std::optional<Listing> scales = find(name + suffix);
      if (!scales || !is_float(scales->dtype)) continue;
      if (!scale_block(found->shape, scales->shape)) continue;
      found->scales = scales->name;
      break;
    }
    return found;
  }

  ConstTensorView tensor_of_caller(const std::string& name) {
    const std::size_t index = index_of(name);
    const WeightTensors::Listing& listing = caller->listings[index];
    const TensorLayout layout = layout_of(kHandedOver, name, listing.dtype, listing.shape);
    std::byte* const data = own_memory().get(layout.bytes());
    const std::lock_guard lock(reading);
    call_back(caller->read, index, std::span(data, layout.bytes()));
    return {data, layout.dtype, layout.shape};
  }

  ConstTensorView stored_tensor(const std::string& name) {
    const SafetensorsFile& file = file_with(name);
    const TensorLayout layout = file.layout(name);
    std::byte* const data = own_memory().get(layout.bytes());
    file.read(name, 0, {data, layout.bytes()});
    return {data, layout.dtype, layout.shape};
  }

  ConstTensorView tensor(const std::string& name) {
    return caller != nullptr ? tensor_of_caller(name) : stored_tensor(name);
  }

  ConstTensorView scaled_tensor(const Listing& weight) {
    const ConstTensorView stored_scales = tensor(weight.scales);
    std::vector<float> scales(static_cast<std::size_t>(stored_scales.shape.elements()));
    widen_to_f32(stored_scales.dtype, stored_scales.data, scales.data(), scales.size());
    const auto sizes = stored_scales.shape.sizes();
    const std::optional<ScaleBlock> block = scale_block(weight.shape, {sizes.begin(), sizes.end()});
    const ConstTensorView stored = tensor(weight.name);
    const std::vector<std::byte> bits(stored.data, stored.data + stored.bytes());
    auto* const values = reinterpret_cast<float*>(own_memory().get(bits.size() * sizeof(float)));
    scale_weights(bits, stored.shape[1], *block, scales, {values, bits.size()});
    return {reinterpret_cast<const std::byte*>(values), DType::kF32, stored.shape};
  }

  bool is_dummy = false;
  std::uint64_t seed = 0;
  std::string directory;
  std::map<std::string, std::string> shard_names;  // tensor -> name of its file
  std::vector<std::string> names;                  // the keys of shard_names
  std::map<std::string, Shard> shards;             // by name of the file
  const WeightTensors* caller = nullptr;           // not null: has the tensors
  std::map<std::string, std::size_t> handed_over;  // tensor -> its place in the caller's list
  std::mutex reading;                              // held while the caller's function runs

  std::mutex mutex;  // guards the map below, not the memory, each of which belongs to one thread
  std::map<std::thread::id, Memory> memory_of_threads;
};

WeightSource::WeightSource(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WeightSource::WeightSource(WeightSource&&) noexcept = default;
WeightSource& WeightSource::operator=(WeightSource&&) noexcept = default;
WeightSource::~WeightSource() = default;

WeightSource WeightSource::open(const std::string& directory) {
  auto impl = std::make_unique<Impl>();
  impl->directory = directory;
  FOVEA_CHECK(directory_exists(directory), kNotFound, directory,
              ": expected the directory of a model");
  const std::string index = impl->path_of(kIndexFile);
  const bool has_single = path_exists(impl->path_of(kSingleFile));
  if (!has_single && path_exists(index)) {
    for (const auto& [tensor, shard] : read_index(index)) impl->add_tensor(tensor, shard);
  } else {
    const std::vector<std::string> files =
        has_single ? std::vector<std::string>{kSingleFile} : unindexed_files(directory);
    for (const std::string& name : files) {
      const SafetensorsFile file(impl->path_of(name));
      for (const TensorEntry& entry : file.header().tensors) impl->add_tensor(entry.name, name);
    }
  }
  for (const auto& [tensor, shard] : impl->shard_names) impl->names.push_back(tensor);
  return WeightSource(std::move(impl));
}

WeightSource WeightSource::dummy(std::uint64_t seed) {
  auto impl = std::make_unique<Impl>();
  impl->is_dummy = true;
  impl->seed = seed;
  return WeightSource(std::move(impl));
}

WeightSource WeightSource::handed_over(const std::string& directory, const WeightTensors& tensors) {
  FOVEA_CHECK(tensors.read != nullptr, kInvalidArgument, directory, ": ", kHandedOver,
              " come without a function that reads them");
  auto impl = std::make_unique<Impl>();
  impl->directory = directory;
  impl->caller = &tensors;
  for (std::size_t i = 0; i < tensors.listings.size(); ++i) {
    const std::string& name = tensors.listings[i].name;
    const bool is_new = impl->handed_over.emplace(name, i).second;
    FOVEA_CHECK(is_new, kInvalidArgument, directory, ": two ", kHandedOver, " are called ",
                json_quote(name));
  }
  for (const auto& [name, index] : impl->handed_over) impl->names.push_back(name);
  return WeightSource(std::move(impl));
}

bool WeightSource::is_dummy() const noexcept { return impl_->is_dummy; }

bool WeightSource::is_stored() const noexcept {
  return !impl_->is_dummy && impl_->caller == nullptr;
}

const std::string& WeightSource::directory() const noexcept { return impl_->directory; }

const std::vector<std::string>& WeightSource::names() const noexcept { return impl_->names; }

const std::string& WeightSource::file_of(const std::string& name) const {
  static const std::string no_file = kHandedOver;
  if (impl_->caller != nullptr) return no_file;
  return impl_->shard_names.at(name);
}

std::optional<WeightSource::Listing> WeightSource::listing(const std::string& name) const {
  return impl_->find_with_scales(name);
}

ConstTensorView WeightSource::tensor(const std::string& name, const Shape& shape) const {
  check_interrupt();
  if (impl_->is_dummy) return impl_->dummy_tensor(name, shape);
  const std::optional<Listing> listing = impl_->find_with_scales(name);
  return listing && !listing->scales.empty() ? impl_->scaled_tensor(*listing) : impl_->tensor(name);
}

std::optional<std::string> find_prefix(const WeightSource& weights, std::string_view anchor,
                                       std::string_view suffix) {
  const std::string wanted = cat(anchor, suffix);
  const std::string* found = nullptr;
  for (const std::string& name : weights.names()) {
    if (!name.ends_with(wanted)) continue;
    const std::size_t front = name.size() - wanted.size();
    if (front != 0 && name[front - 1] != '.') continue;
    FOVEA_CHECK(found == nullptr, kCorruptData, weights.directory(), ": two tensors end with ",
                json_quote(wanted), ": ", json_quote(*found), " in ", weights.file_of(*found),
                " and ", json_quote(name), " in ", weights.file_of(name));
    found = &name;
  }
  if (found == nullptr) return std::nullopt;
  return found->substr(0, found->size() - suffix.size());
}

}  // namespace fovea::checkpoint
