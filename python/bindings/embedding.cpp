#include "embedding.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "errors.h"
#include "fovea/row_formats.h"
#include "names.h"
#include "paths.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

/// An embedding, and the numbers that a view of its rows refers to.
struct Rows {
  Embedding item;
  nb::object
      tensor;  ///< of another library, that holds the rows in place of `item`, if there is one
  std::array<Py_ssize_t, 2> shape{};
  std::array<Py_ssize_t, 2> strides{};

  explicit Rows(Embedding embedding) : item(std::move(embedding)) {
    const Py_ssize_t element = item.dtype == RowDType::kFloat32 ? 4 : 2;
    shape = {item.rows, item.width};
    strides = {item.width * element, element};
  }
};

/// Everything but the rows' bytes, in the order of the members, then the bytes.
using State = std::tuple<nb::str, std::string, std::string, std::int64_t, std::int64_t,
                         std::optional<std::array<std::int64_t, 3>>,
                         std::optional<std::vector<std::int64_t>>, std::vector<double>,
                         std::array<std::int64_t, 5>, std::string, nb::object, nb::bytes>;

nb::dlpack::dtype dlpack_type(RowDType dtype) {
  if (dtype == RowDType::kBFloat16)
    return {static_cast<std::uint8_t>(nb::dlpack::dtype_code::Bfloat), 16, 1};
  const std::uint8_t bits = dtype == RowDType::kFloat32 ? 32 : 16;
  return {static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), bits, 1};
}

/// @throws the error that the embedding holds in place of rows.
void require_rows(const Rows& rows) {
  if (rows.item.error) throw Error(*rows.item.error);
}

/// @throws Error(kInvalidArgument) for an embedding whose rows a tensor holds.
void require_no_tensor(const Rows& rows) {
  if (!rows.tensor.is_valid()) return;
  throw Error(ErrorCode::kInvalidArgument,
              rows.item.name + ": its rows are in a tensor of another library, see torch()");
}

/// A view of the rows that keeps `self`.
template <class Framework>
nb::object view(nb::handle self, nb::dlpack::dtype dtype) {
  auto& rows = nb::cast<Rows&>(self);
  require_rows(rows);
  require_no_tensor(rows);
  const std::array shape{static_cast<std::size_t>(rows.shape[0]),
                         static_cast<std::size_t>(rows.shape[1])};
  return nb::cast(nb::ndarray<Framework>(rows.item.data.data(), shape.size(), shape.data(), self,
                                         nullptr, dtype));
}

/// The package needs no numpy until somebody asks for an array.
void require_numpy() {
  try {
    nb::module_::import_("numpy");
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ImportError)) throw;
    throw nb::import_error(
        "an array takes numpy: install it (pip install 'fovea-encoder[numpy]'), or take "
        "memoryview(item) or torch()");
  }
}

nb::object array(nb::handle self) {
  require_numpy();
  const RowDType dtype = nb::cast<Rows&>(self).item.dtype;
  return view<nb::numpy>(
      self, dtype == RowDType::kBFloat16 ? nb::dtype<std::uint16_t>() : dlpack_type(dtype));
}

nb::object numpy(nb::handle self) {
  nb::object elements = array(self);
  if (nb::cast<Rows&>(self).item.dtype != RowDType::kBFloat16) return elements;
  try {
    return elements.attr("view")(nb::module_::import_("ml_dtypes").attr("bfloat16"));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ImportError)) throw;
    throw nb::import_error(
        "numpy has no bfloat16: install ml_dtypes, call torch(), or encode with dtype=\"float32\"");
  }
}

nb::object as_array(nb::handle self, nb::handle dtype, nb::handle copy) {
  nb::object elements = numpy(self);
  if (!dtype.is_none() && !elements.attr("dtype").equal(dtype)) {
    if (copy.is(Py_False)) throw nb::value_error("another dtype takes a copy");
    return elements.attr("astype")(dtype);
  }
  return copy.is(Py_True) ? nb::object(elements.attr("copy")()) : elements;
}

nb::object torch(nb::handle self) {
  const auto& rows = nb::cast<const Rows&>(self);
  require_rows(rows);
  const nb::module_ torch = nb::module_::import_("torch");
  // The tensor itself, because only the one that torch allocated knows Tensor.record_stream().
  if (rows.tensor.is_valid() && nb::isinstance(rows.tensor, torch.attr("Tensor"))) {
    return rows.tensor;
  }
  return torch.attr("from_dlpack")(self);
}

nb::object dlpack(nb::handle self, const nb::kwargs& arguments) {
  const auto& rows = nb::cast<const Rows&>(self);
  const nb::object tensor = rows.tensor.is_valid()
                                ? rows.tensor
                                : view<nb::array_api>(self, dlpack_type(rows.item.dtype));
  return tensor.attr("__dlpack__")(**arguments);
}

nb::object dlpack_device(const Rows& rows) {
  if (rows.tensor.is_valid()) return rows.tensor.attr("__dlpack_device__")();
  return nb::make_tuple(nb::device::cpu::value, 0);
}

/// Lets `tensor` hold the rows, which are written to it. Frees those of the embedding: no view of
/// them may be left.
void set_tensor(Rows& rows, nb::object tensor) {
  rows.item.data = {};
  rows.tensor = std::move(tensor);
}

int get_buffer(PyObject* self, Py_buffer* buffer, int flags) {
  buffer->obj = nullptr;
  if (!nb::inst_ready(nb::handle(self))) {
    PyErr_SetString(PyExc_BufferError, "this embedding was never made");
    return -1;
  }
  auto* rows = nb::inst_ptr<Rows>(nb::handle(self));
  if (rows->item.error) {
    PyErr_SetString(PyExc_BufferError, "this embedding holds an error, not rows");
    return -1;
  }
  if (rows->tensor.is_valid()) {
    PyErr_SetString(PyExc_BufferError, "the rows are in a tensor of another library, see torch()");
    return -1;
  }
  if (rows->item.dtype == RowDType::kBFloat16) {
    PyErr_SetString(PyExc_BufferError,
                    "the buffer protocol has no bfloat16: use torch(), or numpy() with ml_dtypes");
    return -1;
  }
  if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && rows->shape[0] > 1 &&
      rows->shape[1] > 1) {
    PyErr_SetString(PyExc_BufferError, "the rows lie one after the other, not the columns");
    return -1;
  }
  static char format_float32[] = "f";
  static char format_float16[] = "e";
  const bool single = rows->item.dtype == RowDType::kFloat32;
  buffer->buf = rows->item.data.data();
  buffer->obj = Py_NewRef(self);
  buffer->len = rows->shape[0] * rows->strides[0];
  buffer->itemsize = rows->strides[1];
  buffer->readonly = 0;
  buffer->ndim = 2;
  buffer->format = (flags & PyBUF_FORMAT) == 0 ? nullptr : single ? format_float32 : format_float16;
  buffer->shape = (flags & PyBUF_ND) == 0 ? nullptr : rows->shape.data();
  buffer->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? rows->strides.data() : nullptr;
  buffer->suboffsets = nullptr;
  buffer->internal = nullptr;
  return 0;
}

nb::bytes torch_file(const StoredTensor& tensor) {
  const std::vector<std::byte> file =
      in_memory([&](const ByteSink& sink) { write_torch(tensor, sink); });
  return nb::bytes(file.data(), file.size());
}

State get_state(const Rows& rows) {
  require_no_tensor(rows);
  const Embedding& item = rows.item;
  return {path_text(item.name),
          name_of(kModalities, item.modality),
          name_of(kRowDTypes, item.dtype),
          item.rows,
          item.width,
          item.grid_thw,
          item.retained,
          item.timestamps,
          {item.source_width_px, item.source_height_px, item.num_frames, item.resized_width_px,
           item.resized_height_px},
          item.key,
          item.error ? error_object(*item.error) : nb::none(),
          nb::bytes(item.data.data(), item.data.size())};
}

/// Bytes of rows of this shape. @throws nanobind::value_error for a shape that is none.
std::size_t bytes_of_shape(std::int64_t rows, std::int64_t width, RowDType dtype) {
  std::int64_t bytes = dtype == RowDType::kFloat32 ? 4 : 2;
  if (rows < 0 || width < 0 || __builtin_mul_overflow(bytes, width, &bytes) ||
      __builtin_mul_overflow(bytes, rows, &bytes)) {
    throw nb::value_error("an embedding without a size");
  }
  return static_cast<std::size_t>(bytes);
}

/// @throws nanobind::value_error for rows that do not have the size that the members say.
Rows checked(Embedding item) {
  if (item.data.size() != bytes_of_shape(item.rows, item.width, item.dtype))
    throw nb::value_error("rows that do not fit the shape of their embedding");
  return Rows(std::move(item));
}

void set_state(Rows& rows, const State& state) {
  const auto& [name, modality, dtype, count, width, grid, retained, timestamps, sizes, key, error,
               bytes] = state;
  Embedding item{
      .name = file_path(name),
      .modality = value_named(kModalities, modality, "modality"),
      .rows = count,
      .width = width,
      .dtype = value_named(kRowDTypes, dtype, "dtype"),
      .data = RowBytes(std::span(static_cast<const std::byte*>(bytes.data()), bytes.size())),
      .grid_thw = grid,
      .retained = retained,
      .timestamps = timestamps,
      .source_width_px = sizes[0],
      .source_height_px = sizes[1],
      .num_frames = sizes[2],
      .resized_width_px = sizes[3],
      .resized_height_px = sizes[4],
      .key = key};
  if (!error.is_none()) item.error = error_from(error);
  new (&rows) Rows(checked(std::move(item)));
}

/// What a Python object with the buffer protocol holds.
class Buffer {
 public:
  explicit Buffer(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { PyBuffer_Release(&view_); }
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

nb::object embedding_of(const nb::str& name, const std::string& modality, const std::string& dtype,
                        const std::array<std::int64_t, 2>& shape, nb::handle data,
                        std::optional<std::array<std::int64_t, 3>> grid,
                        std::optional<std::vector<std::int64_t>> retained,
                        std::vector<double> timestamps, const std::string& key) {
  const Buffer buffer(data);
  return nb::cast(checked({.name = file_path(name),
                           .modality = value_named(kModalities, modality, "modality"),
                           .rows = shape[0],
                           .width = shape[1],
                           .dtype = value_named(kRowDTypes, dtype, "dtype"),
                           .data = RowBytes(buffer.bytes()),
                           .grid_thw = grid,
                           .retained = std::move(retained),
                           .timestamps = std::move(timestamps),
                           .key = key}));
}

nb::object failed_embedding(const nb::str& name, const std::string& modality, nb::handle error) {
  Embedding item{.name = file_path(name),
                 .modality = value_named(kModalities, modality, "modality")};
  item.error = error_from(error);
  return nb::cast(Rows(std::move(item)));
}

nb::str text(const Rows& rows) {
  const Embedding& item = rows.item;
  const std::string name = "<fovea_encoder.Embedding of " + item.name;
  if (item.error) return printable_text(name + ": " + to_string(item.error->code()) + ">");
  return printable_text(name + ": " + std::to_string(item.rows) + " rows of " +
                        std::to_string(item.width) + " " + name_of(kRowDTypes, item.dtype) + ">");
}

}  // namespace

void bind_embedding(nb::module_& module) {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                                {0, nullptr}};
  nb::class_<Rows>(module, "Embedding", nb::type_slots(slots),
                   "The rows of one image or video, or the error that it ended with. Arrays made "
                   "of it share its memory and keep it.")
      .def_prop_ro(
          "name", [](const Rows& rows) { return path_text(rows.item.name); },
          "The path, or \"images[i]\".")
      .def_prop_ro(
          "modality", [](const Rows& rows) { return name_of(kModalities, rows.item.modality); },
          "\"image\" or \"video\".")
      .def_prop_ro(
          "shape", [](const Rows& rows) { return std::pair(rows.shape[0], rows.shape[1]); },
          "Rows, and elements of a row: the main embedding, then the deepstack levels.")
      .def_prop_ro(
          "dtype", [](const Rows& rows) { return name_of(kRowDTypes, rows.item.dtype); },
          "\"float32\", \"bfloat16\" or \"float16\".")
      .def_prop_ro(
          "grid_thw",
          [](const Rows& rows) -> nb::object {
            if (!rows.item.grid_thw) return nb::none();
            const auto& [t, h, w] = *rows.item.grid_thw;
            return nb::make_tuple(t, h, w);
          },
          nb::sig("def grid_thw(self) -> tuple[int, int, int] | None"),
          "Patches in time, height and width; None for families without a grid.")
      .def_prop_ro(
          "timestamps", [](const Rows& rows) { return rows.item.timestamps; },
          "Of a video: seconds of each temporal patch.")
      .def_prop_ro(
          "retained", [](const Rows& rows) { return rows.item.retained; },
          "Of a pruned video: which rows these are.")
      .def_prop_ro(
          "source_size",
          [](const Rows& rows) {
            return std::pair(rows.item.source_width_px, rows.item.source_height_px);
          },
          "Width and height before resizing.")
      .def_prop_ro(
          "resized_size",
          [](const Rows& rows) {
            return std::pair(rows.item.resized_width_px, rows.item.resized_height_px);
          },
          "Width and height that the tower saw.")
      .def_prop_ro("num_frames", [](const Rows& rows) { return rows.item.num_frames; })
      .def_prop_ro(
          "key", [](const Rows& rows) { return rows.item.key; },
          "Names the rows by content, model and options. Empty without an encoder cache.")
      .def_prop_ro(
          "cache", [](const Rows& rows) { return name_of(kCacheUses, rows.item.cache); },
          nb::sig("def cache(self) -> str | None"),
          "What the encoder cache did: \"hit\", \"join\", \"miss\" or \"bypass\"; None if it was "
          "not asked, and after pickling.")
      .def_prop_ro(
          "units_reused", [](const Rows& rows) { return rows.item.units_reused; },
          "Frames or tiles whose rows are those of equal ones of the call; 0 after pickling.")
      .def_prop_ro(
          "graph", [](const Rows& rows) { return name_of(kGraphUses, rows.item.graph); },
          nb::sig("def graph(self) -> str | None"),
          "How the tower ran: \"hit\" by replay, \"partial\", \"miss\" eagerly; None if it did "
          "not, "
          "and after pickling.")
      .def_prop_ro(
          "error",
          [](const Rows& rows) -> nb::object {
            return rows.item.error ? error_object(*rows.item.error) : nb::none();
          },
          nb::sig("def error(self) -> Exception | None"),
          "The fovea.Error of the item, with on_error=\"record\".")
      .def("numpy", numpy, nb::sig("def numpy(self) -> typing.Any"),
           "The rows as a numpy array, without a copy; bfloat16 takes ml_dtypes.")
      .def("torch", torch, nb::sig("def torch(self) -> typing.Any"),
           "The rows as a torch tensor, without a copy: on the host, or where they were asked for.")
      .def("_array", array, nb::sig("def _array(self) -> typing.Any"),
           "The rows as a numpy array, without a copy; bfloat16 as its bits in uint16.")
      .def(
          "torch_file", [](const Rows& rows) { return torch_file(stored_rows(rows.item)); },
          "What torch.save() writes for the rows.")
      .def("__array__", as_array, nb::arg("dtype") = nb::none(), nb::kw_only(),
           nb::arg("copy") = nb::none())
      .def("__dlpack__", dlpack,
           nb::sig("def __dlpack__(self, **arguments: typing.Any) -> typing.Any"))
      .def("__dlpack_device__", dlpack_device,
           nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def("__len__", [](const Rows& rows) { return rows.shape[0]; })
      .def("__repr__", text)
      .def("__getstate__", get_state)
      .def("__setstate__", set_state);
  module.def(
      "row_dtype",
      [](const std::string& name) {
        return name_of(kRowDTypes, value_named(kRowDTypes, name, "dtype"));
      },
      nb::arg("name"), nb::sig("def row_dtype(name: str) -> str"),
      "The type that rows of this `dtype` have.");
  module.def(
      "set_tensor", set_tensor, nb::arg("item"), nb::arg("tensor"),
      nb::sig("def set_tensor(item: Embedding, tensor: typing.Any) -> None"),
      "Lets a tensor [rows, width] of another library hold the rows in place of the embedding, "
      "whose own are freed: no view of them may be left.");
  module.def(
      "grid_file",
      [](const std::array<std::int64_t, 3>& grid) { return torch_file(stored_grid(grid)); },
      nb::arg("grid_thw"), "What torch.save() writes for a grid.");
  module.def("embedding", embedding_of, nb::arg("name"), nb::arg("modality"), nb::arg("dtype"),
             nb::arg("shape"), nb::arg("data"), nb::arg("grid_thw") = nb::none(),
             nb::arg("retained") = nb::none(), nb::arg("timestamps") = std::vector<double>(),
             nb::arg("key") = "",
             nb::sig("def embedding(name: str, modality: str, dtype: str, shape: "
                     "collections.abc.Sequence[int], data: typing.Any, grid_thw: "
                     "collections.abc.Sequence[int] | None = None, retained: "
                     "collections.abc.Sequence[int] | None = None, timestamps: "
                     "collections.abc.Sequence[float] = (), key: str = '') -> Embedding"),
             "An embedding of rows that were encoded elsewhere; `data`, their bytes, is copied.");
  module.def(
      "failed_embedding", failed_embedding, nb::arg("name"), nb::arg("modality"), nb::arg("error"),
      nb::sig("def failed_embedding(name: str, modality: str, error: Exception) -> Embedding"),
      "An embedding that holds a fovea.Error in place of rows.");
}

nb::list embedding_list(std::vector<Embedding> items) {
  nb::list list;
  for (Embedding& item : items) list.append(nb::cast(Rows(std::move(item))));
  return list;
}

}  // namespace fovea::python
