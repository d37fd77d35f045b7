#include "media.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "errors.h"
#include "fovea/error.h"
#include "paths.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

/// Bytes in memory of a Python object.
struct Pixels {
  const std::uint8_t* data = nullptr;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  ///< in bytes
  std::shared_ptr<const void> owner;
  std::optional<std::int64_t> num_bytes;  ///< that are there, if not all

  /// Bytes, all of them there; nothing if 63 bits do not count them.
  [[nodiscard]] std::optional<std::int64_t> size() const {
    std::int64_t size = 1;
    for (const std::int64_t extent : shape) {
      if (extent == 0) return 0;
      if (extent < 0 || __builtin_mul_overflow(size, extent, &size)) return std::nullopt;
    }
    return size;
  }
};

/// A buffer of a Python object, until the last item that refers to it goes, on whatever thread.
class HeldBuffer {
 public:
  explicit HeldBuffer(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_RECORDS_RO) != 0) throw nb::python_error();
  }
  HeldBuffer(const HeldBuffer&) = delete;
  HeldBuffer& operator=(const HeldBuffer&) = delete;
  ~HeldBuffer() {
    const AnyGil gil;
    if (gil) PyBuffer_Release(&view_);
  }
  [[nodiscard]] const Py_buffer& view() const noexcept { return view_; }

 private:
  Py_buffer view_{};
};

/// An array of DLPack, likewise.
struct HeldArray {
  std::unique_ptr<nb::ndarray<nb::ro>> array;

  explicit HeldArray(nb::ndarray<nb::ro> held)
      : array(std::make_unique<nb::ndarray<nb::ro>>(std::move(held))) {}
  HeldArray(const HeldArray&) = delete;
  HeldArray& operator=(const HeldArray&) = delete;
  ~HeldArray() {
    const AnyGil gil;
    if (gil) {
      array.reset();
    } else {
      static_cast<void>(array.release());  // it goes with the process
    }
  }
};

[[noreturn]] void refuse(const std::string& name, Modality modality, const std::string& got) {
  const std::string expected = modality == Modality::kVideo
                                   ? "a path, an encoded video as bytes or uint8 frames "
                                     "[frames, height, width, 3]"
                                   : "a path, an encoded image as bytes, a PIL image or uint8 "
                                     "pixels [height, width, 3]";
  throw nb::type_error((name + ": expected " + expected + ", got " + got).c_str());
}

std::string name_of_type(nb::handle object) { return nb::cast<std::string>(nb::inst_name(object)); }

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

/// @throws TypeError for other shapes than those of pixels.
void check_shape(const std::vector<std::int64_t>& shape, const std::string& name,
                 Modality modality) {
  const std::size_t rank = modality == Modality::kVideo ? 4 : 3;
  if (shape.size() == rank && shape.back() == 3) return;
  refuse(name, modality, "an array " + shape_text(shape));
}

/// The type of elements. ctypes puts the order of their bytes in front, also of single ones.
std::string_view element_format(const Py_buffer& view) {
  std::string_view format = view.format == nullptr ? "B" : view.format;
  if (format.size() > 1 && std::string_view("@=<>!").find(format.front()) != format.npos) {
    format.remove_prefix(1);
  }
  return format;
}

/// Strides of single bytes, which ctypes leaves out where they lie one after the other.
std::vector<std::int64_t> byte_strides(const Py_buffer& view) {
  if (view.strides != nullptr) return {view.strides, view.strides + view.ndim};
  std::vector<std::int64_t> strides(static_cast<std::size_t>(view.ndim), 1);
  for (std::size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * view.shape[i];
  return strides;
}

Pixels pixels_of_buffer(nb::handle object, const std::string& name, Modality modality) {
  const auto held = std::make_shared<const HeldBuffer>(object);
  const Py_buffer& view = held->view();
  const std::string_view format = element_format(view);
  const bool bytes = view.ndim == 1 && (format == "b" || format == "c");
  if (view.itemsize != 1 || (format != "B" && !bytes)) {
    refuse(name, modality, "an array of type \"" + std::string(format) + "\"");
  }
  return {.data = static_cast<const std::uint8_t*>(view.buf),
          .shape = {view.shape, view.shape + view.ndim},
          .strides = byte_strides(view),
          .owner = held};
}

Pixels pixels_of_dlpack(nb::handle object, const std::string& name, Modality modality) {
  nb::ndarray<nb::ro> array;
  if (!nb::try_cast(object, array)) refuse(name, modality, "a " + name_of_type(object));
  if (array.device_type() != nb::device::cpu::value) {
    refuse(name, modality, "an array that is not in host memory");
  }
  if (array.dtype() != nb::dtype<std::uint8_t>()) {
    refuse(name, modality, "an array of another type than uint8");
  }
  Pixels pixels{.data = static_cast<const std::uint8_t*>(array.data())};
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    pixels.shape.push_back(static_cast<std::int64_t>(array.shape(i)));
    pixels.strides.push_back(array.stride(i));  // of single bytes
  }
  pixels.owner = std::make_shared<const HeldArray>(std::move(array));
  return pixels;
}

bool is_contiguous(const Pixels& pixels) {
  std::int64_t stride = 1;
  for (std::size_t i = pixels.shape.size(); i-- > 0;) {
    if (pixels.shape[i] != 1 && pixels.strides[i] != stride) return false;
    stride *= pixels.shape[i];
  }
  return true;
}

/// Copies what lies behind `from` along the axis and those behind it. @return the end of the copy.
std::uint8_t* copy_axis(const Pixels& pixels, std::size_t axis, const std::uint8_t* from,
                        std::uint8_t* out) {
  const std::int64_t stride = pixels.strides[axis];
  const bool is_last = axis + 1 == pixels.shape.size();
  for (std::int64_t i = 0; i < pixels.shape[axis]; ++i, from += stride) {
    if (is_last) {
      *out++ = *from;
    } else {
      out = copy_axis(pixels, axis + 1, from, out);
    }
  }
  return out;
}

/// Most bytes that a copy of an array takes; 0: the size of its pixels alone says that encode()
/// refuses it. @throws TypeError for shapes that are no item's.
std::int64_t most_copied(const Pixels& pixels, const std::string& name, Modality modality,
                         const MediaLimits& limits) {
  const bool video = modality == Modality::kVideo;
  const std::vector<std::int64_t>& shape = pixels.shape;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto most_encoded = static_cast<std::int64_t>(
      std::min<std::uint64_t>(video ? limits.max_video_bytes : limits.max_image_bytes, kMost));
  if (shape.size() == 1) return most_encoded;
  check_shape(shape, name, modality);
  const std::int64_t height = shape[shape.size() - 3];
  const std::int64_t width = shape[shape.size() - 2];
  const bool fits = std::max(height, width) <= limits.max_image_side_px &&
                    width <= limits.max_image_pixels / std::max<std::int64_t>(height, 1) &&
                    (!video || shape[0] <= limits.max_video_frames);
  if (!fits) return 0;
  return video ? most_encoded : kMost;
}

/// Pixels whose bytes lie one after the other: where they are, as a copy, or no bytes at all if
/// encode() refuses their size. @throws Error(kInvalidArgument) for another array whose copy would
/// be larger than an encoded item.
Pixels contiguous(Pixels pixels, const std::string& name, Modality modality,
                  const Reading& reading) {
  const std::optional<std::int64_t> size = pixels.size();
  if (size == 0 || (size && is_contiguous(pixels))) return pixels;
  const std::int64_t most = most_copied(pixels, name, modality, reading.limits);
  const auto copy = std::make_shared<std::vector<std::uint8_t>>();
  if (most > 0) {
    if (!size || *size > most) {
      throw Error(ErrorCode::kInvalidArgument,
                  name + ": expected an array whose bytes lie one after the other, or of at most " +
                      std::to_string(most) + " bytes, got " + shape_text(pixels.shape));
    }
    const WithoutGil release(reading.call);
    copy->resize(static_cast<std::size_t>(*size));
    copy_axis(pixels, 0, pixels.data, copy->data());
  }
  pixels.data = copy->data();
  pixels.num_bytes = std::ssize(*copy);
  pixels.owner = copy;
  return pixels;
}

Pixels pixels_of(nb::handle object, const std::string& name, Modality modality,
                 const Reading& reading) {
  if (nb::isinstance<nb::tuple>(object) && nb::len(object) == 2 &&
      PyObject_CheckBuffer(object[0].ptr()) != 0) {
    Pixels pixels =
        contiguous(pixels_of_buffer(object[0], name, modality), name, modality, reading);
    const std::optional<std::int64_t> size = pixels.size();
    if (!nb::try_cast(object[1], pixels.shape) || pixels.size() != size) {
      refuse(name, modality, "bytes that do not fit their shape");
    }
    return pixels;
  }
  if (PyObject_CheckBuffer(object.ptr()) != 0) {
    return contiguous(pixels_of_buffer(object, name, modality), name, modality, reading);
  }
  if (nb::hasattr(object, "__dlpack__")) {
    return contiguous(pixels_of_dlpack(object, name, modality), name, modality, reading);
  }
  refuse(name, modality, "a " + name_of_type(object));
}

nb::list image_paths(nb::handle directory) {
  nb::list paths;
  for (const std::string& path : images_in(file_path(directory))) paths.append(path_text(path));
  return paths;
}

MediaItem item_of_pixels(Pixels pixels, const std::string& name, Modality modality, double fps) {
  const std::int64_t size = pixels.num_bytes ? *pixels.num_bytes : pixels.size().value_or(0);
  MediaBytes content({pixels.data, static_cast<std::size_t>(size)}, std::move(pixels.owner));
  const std::vector<std::int64_t>& shape = pixels.shape;
  const bool video = modality == Modality::kVideo;
  if (shape.size() == 1) {
    return video ? video_bytes(std::move(content), name, fps)
                 : image_bytes(std::move(content), name);
  }
  check_shape(shape, name, modality);
  if (video) {
    return video_rgb(std::move(content), shape[0], shape[2], shape[1], fps, name);
  }
  return image_rgb(std::move(content), shape[1], shape[0], name);
}

/// As video_path(). What it refuses is left to the call that reads it, and is an error of its item:
/// a file may be there by then. Only a directory without frames has that error in `given`, because
/// the call would take it for a file.
MediaItem video_at(const std::string& path, double fps, GivenItems& given) try {
  return video_path(path, fps);
} catch (const Error& problem) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    given.unreadable.emplace(given.items.size(), problem);
  }
  return {.modality = Modality::kVideo, .name = path, .fps = fps, .source = EncodedFile{path}};
}

/// What a processor made of an item. The name is given where it is used.
struct Patches {
  MediaItem item;
};

[[noreturn]] void refuse_values(const std::string& expected, const std::string& got) {
  throw nb::type_error(("values: expected " + expected + ", got " + got).c_str());
}

/// The item of patches [shape[0], shape[1]] in host memory, one after the other.
MediaItem item_of_patches(MediaBytes bytes, nb::dlpack::dtype dtype,
                          const std::vector<std::int64_t>& shape,
                          const std::array<std::int64_t, 3>& grid) {
  const auto is = [&](nb::dlpack::dtype_code code, int bits) {
    return dtype.code == static_cast<std::uint8_t>(code) && dtype.bits == bits && dtype.lanes == 1;
  };
  const auto values = [&](RowDType type) {
    return pixel_values(std::move(bytes), type, shape[0], shape[1], grid, {});
  };
  if (is(nb::dlpack::dtype_code::Float, 32)) return values(RowDType::kFloat32);
  if (is(nb::dlpack::dtype_code::Float, 16)) return values(RowDType::kFloat16);
  if (is(nb::dlpack::dtype_code::Bfloat, 16)) return values(RowDType::kBFloat16);
  if (is(nb::dlpack::dtype_code::UInt, 8)) {
    return pixel_bytes(std::move(bytes), shape[0], shape[1], grid, {});
  }
  refuse_values("float32, bfloat16, float16 or uint8", "an array of another type");
}

/// The number of the GPU that an object is on, as the driver counts, or RowBlock::kHost.
/// @throws TypeError for a tensor that is elsewhere, before anybody asks for its memory.
int place_of(nb::handle object) {
  if (!nb::hasattr(object, "__dlpack_device__")) return RowBlock::kHost;
  const nb::object device = object.attr("__dlpack_device__")();
  const auto kind = nb::cast<std::int64_t>(nb::int_(device[0]));
  if (kind == nb::device::cpu::value || kind == nb::device::cuda_host::value)
    return RowBlock::kHost;
  if (kind == nb::device::cuda::value || kind == nb::device::cuda_managed::value) {
    return nb::cast<int>(nb::int_(device[1]));
  }
  refuse_values("values in host memory or on a GPU",
                "a tensor on another device: pass values.cpu()");
}

std::array<std::int64_t, 3> grid_of(nb::handle object) {
  std::array<std::int64_t, 3> grid{};
  std::size_t count = 0;
  for (const nb::handle size : nb::iter(object)) {
    const nb::object number = nb::steal(PyNumber_Index(size.ptr()));
    if (!number.is_valid()) throw nb::python_error();
    const std::int64_t value = PyLong_AsLongLong(number.ptr());
    if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    if (count < grid.size()) grid[count] = value;
    ++count;
  }
  if (count == grid.size()) return grid;
  throw nb::value_error(
      ("grid_thw: expected 3 sizes in patches, got " + std::to_string(count)).c_str());
}

using StreamHandle = std::optional<std::pair<int, std::uintptr_t>>;

/// Refers to the values, which nobody may change while the item is used.
/// @param stream behind which values on a GPU are there; none: they are.
Patches patches_of(nb::handle values, nb::handle grid_thw, const StreamHandle& stream) {
  const std::array<std::int64_t, 3> grid = grid_of(grid_thw);
  const int place = place_of(values);
  nb::ndarray<nb::ro> array;
  if (!nb::try_cast(values, array)) {
    refuse_values("an array [patches, values of a patch]", "a " + name_of_type(values));
  }
  std::vector<std::int64_t> shape;
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    shape.push_back(static_cast<std::int64_t>(array.shape(i)));
  }
  if (shape.size() != 2) refuse_values("[patches, values of a patch]", shape_text(shape));
  const bool is_packed =
      (shape[1] <= 1 || array.stride(1) == 1) && (shape[0] <= 1 || array.stride(0) == shape[1]);
  if (!is_packed) {
    refuse_values("values that lie one after the other",
                  "an array with strides: pass values.contiguous(), or numpy.ascontiguousarray()");
  }
  const nb::dlpack::dtype dtype = array.dtype();
  const auto* const data = static_cast<const std::uint8_t*>(array.data());
  const std::span bytes(data, array.nbytes());
  const auto held = std::make_shared<const HeldArray>(std::move(array));
  if (place == RowBlock::kHost) {
    return {item_of_patches(MediaBytes(bytes, held), dtype, shape, grid)};
  }
  if (dtype != nb::dtype<std::uint8_t>()) {
    refuse_values("uint8 of a tensor on a GPU, or values in host memory",
                  "values of another type on a GPU: pass values.cpu()");
  }
  PixelBlock block{.data = data,
                   .device = place,
                   .num_patches = shape[0],
                   .patch_dim = shape[1],
                   .grid_thw = grid,
                   .owner = held};
  if (stream) block.stream = {stream->first, reinterpret_cast<void*>(stream->second)};
  return {pixel_block(std::move(block), {})};
}

/// The next item of `given`, to which its error goes.
MediaItem media_item(nb::handle object, const std::string& name, Modality modality,
                     const Reading& reading, GivenItems& given) {
  if (nb::isinstance<Patches>(object)) {
    MediaItem item = nb::cast<const Patches&>(object).item;
    item.modality = modality;
    item.name = name;
    item.fps = reading.fps;
    return item;
  }
  if (nb::isinstance<nb::str>(object) || nb::hasattr(object, "__fspath__")) {
    const std::string path = file_path(object);
    return modality == Modality::kVideo ? video_at(path, reading.fps, given) : image_file(path);
  }
  return item_of_pixels(pixels_of(object, name, modality, reading), name, modality, reading.fps);
}

}  // namespace

void add_media_items(const nb::list& objects, Modality modality, const Reading& reading,
                     GivenItems& given) {
  const std::string list = modality == Modality::kVideo ? "videos[" : "images[";
  given.items.reserve(given.items.size() + objects.size());
  std::size_t place = 0;
  for (const nb::handle object : objects) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();  // copies of many arrays take long
    const std::string name = list + std::to_string(place++) + "]";
    if (nb::isinstance(object, error_type())) {
      const Error problem = error_from(object);
      given.unreadable.emplace(given.items.size(),
                               Error(problem.code(), name + ": " + problem.what()));
      given.items.push_back({.modality = modality, .name = name, .source = EncodedBytes{}});
    } else {
      given.items.push_back(media_item(object, name, modality, reading, given));
    }
  }
}

void bind_media(nb::module_& module) {
  nb::class_<Patches>(module, "PixelValues", "The values of fovea_encoder.PixelValues.")
      .def(
          "__init__",
          [](Patches* self, nb::handle values, nb::handle grid_thw, const StreamHandle& stream) {
            new (self) Patches(patches_of(values, grid_thw, stream));
          },
          nb::arg("values").none(), nb::arg("grid_thw").none(), nb::arg("stream").none(),
          nb::sig("def __init__(self, values: typing.Any, grid_thw: typing.Any, "
                  "stream: tuple[int, int] | None) -> None"))
      .def_prop_ro(
          "grid_thw",
          [](const Patches& patches) {
            const auto& source = patches.item.source;
            std::array<std::int64_t, 3> grid{};
            if (const auto* const values = std::get_if<PixelValues>(&source)) {
              grid = values->grid_thw;
            } else if (const auto* const bytes = std::get_if<PixelBytes>(&source)) {
              grid = bytes->grid_thw;
            } else {
              grid = std::get<PixelBlock>(source).grid_thw;
            }
            return nb::make_tuple(grid[0], grid[1], grid[2]);
          },
          nb::sig("def grid_thw(self) -> tuple[int, int, int]"));
  module.def("images_in", image_paths, nb::arg("directory"),
             nb::sig("def images_in(directory: typing.Any) -> list[str]"),
             "The images of a folder, sorted by name: the frames of a video, if it is one.");
}

}  // namespace fovea::python
