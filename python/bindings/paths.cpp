#include "paths.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

nb::str owned_text(PyObject* text) {
  auto object = nb::steal<nb::str>(text);
  if (!object.is_valid()) throw nb::python_error();
  return object;
}

}  // namespace

std::string file_path(nb::handle object) {
  const nb::object path = nb::steal(PyOS_FSPath(object.ptr()));
  if (!path.is_valid()) throw nb::python_error();
  const auto bytes = nb::isinstance<nb::bytes>(path)
                         ? nb::borrow<nb::bytes>(path)
                         : nb::steal<nb::bytes>(PyUnicode_EncodeFSDefault(path.ptr()));
  if (!bytes.is_valid()) throw nb::python_error();
  return {bytes.c_str(), bytes.size()};
}

nb::str path_text(std::string_view path) {
  return owned_text(
      PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

nb::str printable_text(std::string_view text) {
  return owned_text(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

}  // namespace fovea::python
