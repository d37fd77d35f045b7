#include "memory.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>

#include "fovea/device_memory.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

/// @param handle of CUDA.
void map_at(MappedMemory* place, const std::string& gpu, const nb::bytes& handle,
            std::size_t size) {
  const auto* const bytes = static_cast<const std::uint8_t*>(handle.data());
  const DeviceMemoryName name{.gpu = gpu, .handle = {bytes, bytes + handle.size()}, .bytes = size};
  const nb::gil_scoped_release release;  // the first time loads libraries
  new (place) MappedMemory(name);        // NOLINT: how nanobind makes objects
}

/// The bytes, which keep `self`: a tensor of them unmaps when it and all its views have gone.
nb::object bytes_of(nb::handle self, const nb::kwargs& arguments) {
  const auto& memory = nb::cast<const MappedMemory&>(self);
  const std::size_t shape = memory.bytes();
  const nb::object bytes = nb::cast(nb::ndarray<nb::array_api, std::uint8_t>(
      memory.data(), 1, &shape, self, nullptr, nb::dtype<std::uint8_t>(), nb::device::cuda::value,
      memory.device()));
  return bytes.attr("__dlpack__")(**arguments);
}

}  // namespace

void bind_memory(nb::module_& module) {
  nb::class_<MappedMemory>(module, "MappedMemory",
                           "Memory of another process on a GPU, mapped until all tensors of it go.")
      .def("__init__", &map_at, nb::arg("gpu"), nb::arg("handle"), nb::arg("size"),
           "Maps `size` bytes under a handle of CUDA on the GPU of a UUID.")
      .def_prop_ro("device", &MappedMemory::device, "Number of the GPU in this process.")
      .def("__dlpack__", bytes_of,
           nb::sig("def __dlpack__(self, **arguments: typing.Any) -> typing.Any"))
      .def(
          "__dlpack_device__",
          [](const MappedMemory& memory) {
            return nb::make_tuple(nb::device::cuda::value, memory.device());
          },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"));
}

}  // namespace fovea::python
